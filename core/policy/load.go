package policy

import "time"

// MaxModuleSize is the size of the largest module that travels to servers, in bytes.
const MaxModuleSize = 8 << 20

// LoadRequest asks a cluster to take a policy in. One of Module, Builtin and
// Executable says what the policy is made of.
type LoadRequest struct {
	Name string // what operators call it; empty: the policy's own name

	Module  []byte // a WebAssembly module
	Builtin string // the name of a policy that is linked in
	// Executable is one of those that the servers' operators allow: its name on
	// their list, or its checksum, sha256:HEX. It is on the servers already.
	Executable string

	// Manifest and Signature are policy.yaml and policy.yaml.sig of the bundle
	// that the module came in, as they are on disk; empty where there was none.
	Manifest, Signature []byte

	Config  []byte   // JSON object; empty: the policy's defaults
	Grants  []string // see Grants
	OnFault string   // see ParseOnFault

	// Wait is for how long at most the servers' checks are waited for; 0: until the
	// request's context ends.
	Wait time.Duration
}
