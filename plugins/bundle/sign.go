package bundle

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// signature is the content of the signature file. It signs the manifest, which contains the
// digest of the module, and thus the module too.
type signature struct {
	Version   int    `json:"version"` // 1
	Algorithm string `json:"algorithm"`
	Key       string `json:"key"` // KeyID of the signer
	Signature []byte `json:"signature"`
	// Manifest is the digest of the signed manifest, from which a signature for another content
	// is recognised without the key. It proves nothing; "": not stated.
	Manifest string `json:"manifest,omitempty"`
}

// signatureContext prevents the signature of a manifest from being valid for anything else.
const signatureContext = "cede policy manifest v1\n"

func readSignature(path string) (*signature, error) {
	text, err := readLimited(path, maxManifest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseSignature(path, text)
}

// parseSignature parses a signature. Errors refer to it as path.
func parseSignature(path string, text []byte) (*signature, error) {
	var s signature
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w; sign the policy again", path, err)
	}
	if s.Version != 1 || s.Algorithm != "ed25519" {
		return nil, fmt.Errorf("%s: version %d, algorithm %q: must be version 1 and ed25519; sign the policy again", path, s.Version, s.Algorithm)
	}
	return &s, nil
}

// Sign signs the bundle as it is on disk and writes the signature.
func (b *Bundle) Sign(key ed25519.PrivateKey) error {
	if b.Dir == "" {
		return fmt.Errorf("%s is a single module, and a signature requires a manifest; run `cede policy init` to create a directory with one", b.Path)
	}
	public := key.Public().(ed25519.PublicKey)
	b.signature = &signature{Version: 1, Algorithm: "ed25519", Key: KeyID(public), Signature: ed25519.Sign(key, b.signedBytes()), Manifest: Digest(b.text)}
	text, err := b.signature.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.Dir, SignatureFile), text, 0o644)
}

// encode returns the content of the signature file.
func (s *signature) encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// signedBytes returns the bytes that the signature covers.
func (b *Bundle) signedBytes() []byte { return append([]byte(signatureContext), b.text...) }

// Roots are the public keys of trusted signers.
type Roots []ed25519.PublicKey

// Verify returns the ID of the root that has signed the bundle, or an error if none has.
func (r Roots) Verify(b *Bundle) (keyID string, err error) {
	where, policy := b.Path, "P"
	if b.Dir != "" {
		where, policy = b.Dir, filepath.ToSlash(b.Dir)
	}
	if b.signature == nil {
		return "", fmt.Errorf("%s is not signed; run `cede policy sign %s --key FILE`", where, policy)
	}
	for _, key := range r {
		if KeyID(key) != b.signature.Key {
			continue
		}
		if !ed25519.Verify(key, b.signedBytes(), b.signature.Signature) {
			return "", b.outdatedSignature()
		}
		return b.signature.Key, nil
	}
	return "", fmt.Errorf("%s is signed by %s, which is not one of the %d trusted keys", where, b.signature.Key, len(r))
}

// CheckSignature returns an error with the remedy if the signature was made for another content of
// the manifest. It needs no key, and does not verify the signature.
func (b *Bundle) CheckSignature() error {
	if b.signature == nil || b.signature.Manifest == "" || b.signature.Manifest == Digest(b.text) {
		return nil
	}
	return b.outdatedSignature()
}

func (b *Bundle) outdatedSignature() error {
	where, policy := b.Path, "P"
	if b.Dir != "" {
		where, policy = filepath.Join(b.Dir, SignatureFile), b.Dir
	}
	return fmt.Errorf("%s: the signature of %s was made for another content of %s; sign again with `cede policy sign %s --key FILE`, or download the bundle again",
		filepath.ToSlash(where), b.signature.Key, ManifestFile, filepath.ToSlash(policy))
}

// KeyID returns a short identifier of a public key.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "ed25519:" + hex.EncodeToString(sum[:8])
}

// Types of PEM blocks.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// NewKey generates a key pair and returns it as PEM, in the format of openssl genpkey
// -algorithm ed25519.
func NewKey() (private, public []byte, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, nil, err
	}
	pubDER, err := x509.MarshalPKIXPublicKey(pub)
	if err != nil {
		return nil, nil, err
	}
	private = pem.EncodeToMemory(&pem.Block{Type: privateBlock, Bytes: der})
	return private, pem.EncodeToMemory(&pem.Block{Type: publicBlock, Bytes: pubDER}), nil
}

// ReadPrivateKey reads an ed25519 key in PEM (PKCS #8).
func ReadPrivateKey(path string) (ed25519.PrivateKey, error) {
	block, err := readPEM(path, privateBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: not an ed25519 key; run `openssl genpkey -algorithm ed25519` to create one", path)
	}
	return private, nil
}

// ReadRoots reads public keys in PEM, one or several per file.
func ReadRoots(paths ...string) (Roots, error) {
	var roots Roots
	var errs []error
	for _, path := range paths {
		text, err := readLimited(path, maxManifest)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys, err := ParseRoots(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		roots = append(roots, keys...)
	}
	return roots, errors.Join(errs...)
}

// ParseRoots parses public keys in PEM, at least one. It ignores text between them.
func ParseRoots(text []byte) (Roots, error) {
	var roots Roots
	for {
		block, rest := pem.Decode(text)
		if block == nil && len(roots) > 0 {
			return roots, nil
		}
		if err := checkBlock(block, publicBlock); err != nil {
			return nil, err
		}
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, err
		}
		public, ok := key.(ed25519.PublicKey)
		if !ok {
			return nil, errors.New("not an ed25519 key")
		}
		roots, text = append(roots, public), rest
	}
}

func readPEM(path, kind string) (*pem.Block, error) {
	text, err := readLimited(path, maxManifest)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if err := checkBlock(block, kind); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return block, nil
}

func checkBlock(block *pem.Block, kind string) error {
	if block == nil || block.Type != kind {
		return fmt.Errorf("not a PEM file with -----BEGIN %s-----", kind)
	}
	return nil
}

// Signed reports whether the bundle has a signature, valid or not.
func (b *Bundle) Signed() bool { return b.signature != nil }

// SignedBy returns the key ID of the signature, valid or not, or "" if there is none.
func (b *Bundle) SignedBy() string {
	if b.signature == nil {
		return ""
	}
	return b.signature.Key
}
