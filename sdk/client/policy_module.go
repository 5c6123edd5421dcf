package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// The headers of a response with a module.
const (
	headerPolicyVersion = "X-Cede-Policy-Version"
	headerPolicyDigest  = "X-Cede-Policy-Digest"
)

// PolicyModule is the code of a version.
type PolicyModule struct {
	Version string // id
	Digest  string // sha256:, of Code
	Code    []byte // WebAssembly
}

// Module returns the WebAssembly module of a version, which may be given by a unique
// prefix of its ID; "" means the active version, or the only loaded one. It returns
// an error if the bytes do not have the digest that the server sent.
func (p Policies) Module(ctx context.Context, name, version string) (*PolicyModule, error) {
	r := p.c.call(http.MethodGet, "policy", name, "module")
	r.header.Set("Accept", "application/wasm")
	if version != "" {
		r.query.Set("version", version)
	}
	resp, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { drain(resp.Body); _ = resp.Body.Close() }()
	code, err := io.ReadAll(io.LimitReader(resp.Body, MaxModule+1))
	if err != nil {
		return nil, &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the module was truncated after %d bytes: %v", len(code), err), Hint: "retry"}
	}
	m := &PolicyModule{Version: resp.Header.Get(headerPolicyVersion), Digest: resp.Header.Get(headerPolicyDigest), Code: code}
	if sum := sha256.Sum256(code); "sha256:"+hex.EncodeToString(sum[:]) != m.Digest {
		return nil, &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the received module of %d bytes does not have the digest %q", len(code), m.Digest), Hint: "retry, or use another server"}
	}
	return m, nil
}
