package certificate

import (
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/cede-scheduler/cede/core/model"
)

// Version is the version of the document that this release writes, and the only one that it
// reads.
const Version = 1

// A Document is the content of a certificate.
type Document struct {
	Version    int
	Release    string // of the server that wrote it
	ServerID   string
	StateIndex uint64 // of the state that was planned on
	Now        int64  // time of the plan, in Unix nanoseconds
	Written    int64  // Unix nanoseconds
	ABI        string // of the frames, such as 1.2
	Decision   json.RawMessage
	Policies   []Policy // that were called
	Calls      []Call   // in order
}

// A Policy is a version of a policy with its code.
type Policy struct {
	Name, Version, Digest, Kind string
	Config                      json.RawMessage
	Grants                      []string           `json:",omitempty"`
	Limits                      model.PolicyLimits // of calls
	Module                      []byte             `json:",omitempty"` // WebAssembly; empty for a built-in policy
}

// Layout of a file: magic, length of the content, content, public key, signature of all
// before it. There are no other bytes.
const (
	magic      = "cede decision certificate\n"
	lengthSize = 8
	overhead   = len(magic) + lengthSize + ed25519.PublicKeySize + ed25519.SignatureSize
)

// MaxContent is the maximum size of a document, in bytes.
const MaxContent = 1 << 30

var (
	// ErrNotCertificate means that a file is not a certificate, or is truncated.
	ErrNotCertificate = errors.New("not a certificate of a decision, or truncated")
	// ErrSignature means that the signature does not match the file.
	ErrSignature = errors.New("signature is not valid: the file was changed")

	errContentTooLarge = fmt.Errorf("content is larger than %d MiB", MaxContent>>20)
)

// Write returns a signed certificate.
func Write(d *Document, key ed25519.PrivateKey) ([]byte, error) {
	text, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxContent { // no reader would accept it
		return nil, errContentTooLarge
	}
	var content bytes.Buffer
	z := gzip.NewWriter(&content)
	if _, err := z.Write(text); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint64([]byte(magic), uint64(content.Len()))
	b = append(b, content.Bytes()...)
	b = append(b, key.Public().(ed25519.PublicKey)...)
	return append(b, ed25519.Sign(key, b)...), nil
}

// Read returns the document of a certificate and the key that has signed it. Whether that
// key is trusted is the caller's decision. It returns ErrNotCertificate or ErrSignature if
// any byte was changed.
func Read(b []byte) (*Document, ed25519.PublicKey, error) {
	if len(b) < overhead || !bytes.HasPrefix(b, []byte(magic)) {
		return nil, nil, ErrNotCertificate
	}
	length := binary.BigEndian.Uint64(b[len(magic):])
	if length != uint64(len(b)-overhead) {
		return nil, nil, ErrNotCertificate
	}
	end := len(b) - ed25519.SignatureSize
	key := ed25519.PublicKey(b[end-ed25519.PublicKeySize : end])
	if !ed25519.Verify(key, b[:end], b[end:]) {
		return nil, nil, ErrSignature
	}
	d, err := decode(b[len(magic)+lengthSize : end-ed25519.PublicKeySize])
	return d, key, err
}

// decode decodes a document that was signed.
func decode(content []byte) (*Document, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(z, MaxContent+1))
	if err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if len(text) > MaxContent {
		return nil, errContentTooLarge
	}
	var version struct{ Version int }
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	if version.Version != Version {
		return nil, fmt.Errorf("certificate has version %d: this release reads version %d", version.Version, Version)
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("content: %w", err)
	}
	return d, nil
}

// KeyID returns a short identifier of a public key.
func KeyID(key ed25519.PublicKey) string {
	sum := sha256.Sum256(key)
	return "ed25519:" + hex.EncodeToString(sum[:8])
}

// Is reports whether a file begins as a certificate does.
func Is(b []byte) bool { return bytes.HasPrefix(b, []byte(magic)) }
