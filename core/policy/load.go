package policy

import "time"

// MaxModuleSize is the size of the largest module that travels to servers, in bytes.
const MaxModuleSize = 8 << 20

// A LoadRequest loads a policy into a cluster. Exactly one of Module, Builtin and
// Executable is set.
type LoadRequest struct {
	Name string // name for operators; empty uses the policy's own name

	Module  []byte // a WebAssembly module, or the archive of a composition
	Builtin string // the name of a policy that is linked in
	// Executable is the name of an executable on the allowlist of the servers, or
	// its checksum, sha256:HEX. It exists on the servers already.
	Executable string

	// Manifest and Signature are policy.yaml and policy.yaml.sig of the module's
	// bundle, verbatim; empty if there is no bundle.
	Manifest, Signature []byte

	Config  []byte   // JSON object; empty uses the policy's defaults
	Grants  []string // see Grants
	OnFault string   // see ParseOnFault

	// Wait limits how long the request waits for the checks of the servers; 0 waits
	// until the request's context is done.
	Wait time.Duration
}
