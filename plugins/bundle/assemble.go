package bundle

import (
	"bytes"
	"fmt"
)

// Assemble makes a bundle of a WebAssembly module that is not on disk, with the
// manifest and the signature that came with it; nil where none did. Errors call
// the module by name.
func Assemble(name string, manifest, signature, code []byte) (*Bundle, error) {
	if !bytes.HasPrefix(code, wasmMagic) {
		return nil, fmt.Errorf("%s is no WebAssembly module", name)
	}
	return assemble(name, Manifest{Kind: Wasm, Digest: Digest(code)}, manifest, signature, code)
}

// AssembleExecutable makes a bundle of an executable that is where path says and
// has a digest, with the manifest and the signature that came with its name.
func AssembleExecutable(path, digest string, manifest, signature []byte) (*Bundle, error) {
	return assemble(path, Manifest{Kind: Process, Digest: digest}, manifest, signature, nil)
}

// assemble puts a bundle together whose module is of a kind and has a digest.
func assemble(name string, is Manifest, manifest, signature, code []byte) (*Bundle, error) {
	b := &Bundle{Path: name, Code: code, Manifest: is}
	b.Manifest.Version, b.Manifest.Module = 1, name
	if manifest == nil {
		if signature != nil {
			return nil, fmt.Errorf("%s came with a signature and without the %s that it is over", name, ManifestFile)
		}
		return b, nil
	}
	m, err := ParseManifest(ManifestFile, manifest)
	switch {
	case err != nil:
		return nil, err
	case m.Kind != is.Kind:
		return nil, fmt.Errorf("%s: kind: it says %s, and what came is of kind %s", ManifestFile, m.Kind, is.Kind)
	case m.Digest == "":
		return nil, fmt.Errorf("%s has no digest; run `cede policy build`, which writes it", ManifestFile)
	case m.Digest != is.Digest:
		return nil, fmt.Errorf("%s is not the module of its manifest: it has %s, the manifest says %s; build it again, or get the bundle again",
			name, is.Digest, m.Digest)
	}
	b.Manifest, b.text = *m, manifest
	if signature != nil {
		b.signature, err = parseSignature(SignatureFile, signature)
	}
	return b, err
}

// HasManifest is whether the bundle has a manifest of its own.
func (b *Bundle) HasManifest() bool { return len(b.text) > 0 }

// Contents is the manifest and the signature as they are on disk; nil where there
// is none.
func (b *Bundle) Contents() (manifest, signature []byte, err error) {
	if b.signature != nil {
		signature, err = b.signature.encode()
	}
	return b.text, signature, err
}

// CheckName is nil for what a policy may be called.
func CheckName(name string) error {
	if namePattern.MatchString(name) {
		return nil
	}
	return fmt.Errorf("name: %q does not fit; want lower-case letters, digits, dots and dashes, at most 64", name)
}

// CheckDigest is nil for the digest of a module.
func CheckDigest(digest string) error {
	if digestPattern.MatchString(digest) {
		return nil
	}
	return fmt.Errorf("digest: %q does not fit; want sha256: and 64 hexadecimal digits", digest)
}
