package bundle

import (
	"bytes"
	"fmt"
)

// Assemble returns a bundle of a WebAssembly module or the archive of a composition in
// memory, with its manifest and signature; nil if there is none. Errors refer to the module
// as name.
func Assemble(name string, manifest, signature, code []byte) (*Bundle, error) {
	kind := kindOf(code)
	if kind == "" {
		return nil, fmt.Errorf("%s is not a WebAssembly module or the archive of a composition", name)
	}
	return assemble(name, Manifest{Kind: kind, Digest: Digest(code)}, manifest, signature, code)
}

// magics holds the first bytes of modules by their kind. A tar file begins with the name of
// its first file.
var magics = map[Kind][]byte{Wasm: []byte("\x00asm"), Composition: []byte(CompositionFile + "\x00")}

// kindOf returns the kind of a module that bundles contain, by its first bytes; "" if it is
// none.
func kindOf(head []byte) Kind {
	for kind, magic := range magics {
		if bytes.HasPrefix(head, magic) {
			return kind
		}
	}
	return ""
}

// AssembleExecutable returns a bundle of the executable at path with the given digest, with
// its manifest and signature; nil if there is none.
func AssembleExecutable(path, digest string, manifest, signature []byte) (*Bundle, error) {
	return assemble(path, Manifest{Kind: Process, Digest: digest}, manifest, signature, nil)
}

// assemble combines a module, described by is, with its manifest and signature. It returns
// an error if the manifest describes another module.
func assemble(name string, is Manifest, manifest, signature, code []byte) (*Bundle, error) {
	b := &Bundle{Path: name, Code: code, Manifest: is}
	b.Manifest.Version, b.Manifest.Module = 1, name
	if manifest == nil {
		if signature != nil {
			return nil, fmt.Errorf("%s has a signature but not the %s that it signs", name, ManifestFile)
		}
		return b, nil
	}
	m, err := ParseManifest(ManifestFile, manifest)
	switch {
	case err != nil:
		return nil, err
	case m.Kind != is.Kind:
		return nil, fmt.Errorf("%s: kind is %s, but the module is of kind %s", ManifestFile, m.Kind, is.Kind)
	case m.Digest == "":
		return nil, fmt.Errorf("%s: digest is missing; run `cede policy build`, which writes it", ManifestFile)
	case m.Digest != is.Digest:
		return nil, fmt.Errorf("%s does not match its manifest: digest is %s, manifest expects %s; build or download the bundle again",
			name, is.Digest, m.Digest)
	}
	b.Manifest, b.text = *m, manifest
	if signature != nil {
		b.signature, err = parseSignature(SignatureFile, signature)
	}
	return b, err
}

// HasManifest reports whether the bundle has a manifest of its own.
func (b *Bundle) HasManifest() bool { return len(b.text) > 0 }

// Contents returns the manifest and the signature as stored on disk; nil if there is none.
func (b *Bundle) Contents() (manifest, signature []byte, err error) {
	if b.signature != nil {
		signature, err = b.signature.encode()
	}
	return b.text, signature, err
}

// CheckName returns an error if name is not a valid policy name.
func CheckName(name string) error {
	if namePattern.MatchString(name) {
		return nil
	}
	return fmt.Errorf("name: invalid value %q: must be lower-case letters, digits, dots and dashes, at most 64", name)
}

// CheckDigest returns an error if digest is not a valid module digest.
func CheckDigest(digest string) error {
	if digestPattern.MatchString(digest) {
		return nil
	}
	return fmt.Errorf("digest: invalid value %q: must be sha256: and 64 hexadecimal digits", digest)
}
