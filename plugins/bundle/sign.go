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

// signature is the file beside the manifest. The manifest holds the module's
// digest, so a signature over it is one over the module too.
type signature struct {
	Version   int    `json:"version"` // 1
	Algorithm string `json:"algorithm"`
	Key       string `json:"key"` // KeyID of the signer
	Signature []byte `json:"signature"`
}

// signatureContext keeps a signature over a manifest from being one over anything else.
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

// parseSignature reads a signature; path is what errors call it.
func parseSignature(path string, text []byte) (*signature, error) {
	var s signature
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("%s: %w; sign the policy again", path, err)
	}
	if s.Version != 1 || s.Algorithm != "ed25519" {
		return nil, fmt.Errorf("%s: version %d, algorithm %q: want version 1 and ed25519; sign the policy again", path, s.Version, s.Algorithm)
	}
	return &s, nil
}

// Sign signs a bundle's folder as it is on disk.
func (b *Bundle) Sign(key ed25519.PrivateKey) error {
	if b.Dir == "" {
		return fmt.Errorf("%s is a module alone, and a signature needs a manifest: `cede policy init` makes a folder with one", b.Path)
	}
	public := key.Public().(ed25519.PublicKey)
	b.signature = &signature{Version: 1, Algorithm: "ed25519", Key: KeyID(public), Signature: ed25519.Sign(key, b.signedBytes())}
	text, err := b.signature.encode()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.Dir, SignatureFile), text, 0o644)
}

// encode writes a signature as it is on disk.
func (s *signature) encode() ([]byte, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	return append(text, '\n'), err
}

// signedBytes is what the signature is over.
func (b *Bundle) signedBytes() []byte { return append([]byte(signatureContext), b.text...) }

// Roots are the keys whose signatures an operator trusts.
type Roots []ed25519.PublicKey

// Verify checks that one of the roots has signed the bundle, and returns which.
func (r Roots) Verify(b *Bundle) (keyID string, err error) {
	where := b.Path
	if b.Dir != "" {
		where = b.Dir
	}
	if b.signature == nil {
		return "", fmt.Errorf("%s is not signed; `cede policy sign` signs it", where)
	}
	for _, key := range r {
		if KeyID(key) != b.signature.Key {
			continue
		}
		if !ed25519.Verify(key, b.signedBytes(), b.signature.Signature) {
			return "", fmt.Errorf("%s: the signature of %s does not hold: the manifest was changed since; sign it again, or get the bundle again", where, b.signature.Key)
		}
		return b.signature.Key, nil
	}
	return "", fmt.Errorf("%s is signed by %s, which is not among the %d trusted keys", where, b.signature.Key, len(r))
}

// KeyID is a short name of a public key.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "ed25519:" + hex.EncodeToString(sum[:8])
}

// The types of PEM blocks.
const (
	privateBlock = "PRIVATE KEY"
	publicBlock  = "PUBLIC KEY"
)

// NewKey makes a key pair, as PEM. openssl genpkey -algorithm ed25519 makes the
// same.
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
		return nil, fmt.Errorf("%s: want an ed25519 key; `openssl genpkey -algorithm ed25519` makes one", path)
	}
	return private, nil
}

// ReadRoots reads public keys in PEM, one a file.
func ReadRoots(paths ...string) (Roots, error) {
	var roots Roots
	var errs []error
	for _, path := range paths {
		key, err := readPublicKey(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		roots = append(roots, key)
	}
	return roots, errors.Join(errs...)
}

func readPublicKey(path string) (ed25519.PublicKey, error) {
	block, err := readPEM(path, publicBlock)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%s: want an ed25519 key", path)
	}
	return public, nil
}

func readPEM(path, kind string) (*pem.Block, error) {
	text, err := readLimited(path, maxManifest)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: want a PEM file with -----BEGIN %s-----", path, kind)
	}
	return block, nil
}

// Signed is whether the bundle has a signature, good or bad.
func (b *Bundle) Signed() bool { return b.signature != nil }

// SignedBy names the key of the signature, good or bad; empty without one.
func (b *Bundle) SignedBy() string {
	if b.signature == nil {
		return ""
	}
	return b.signature.Key
}
