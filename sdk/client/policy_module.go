package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
)

// The headers of a module's answer.
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

// Module returns the WebAssembly module of a version, which may be named by a unique
// prefix of its id; "" is the active one, or else the only one that is loaded. Its
// bytes have the digest that the server gives.
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
		return nil, &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the module broke off after %d bytes: %v", len(code), err), Hint: "ask again"}
	}
	m := &PolicyModule{Version: resp.Header.Get(headerPolicyVersion), Digest: resp.Header.Get(headerPolicyDigest), Code: code}
	if sum := sha256.Sum256(code); "sha256:"+hex.EncodeToString(sum[:]) != m.Digest {
		return nil, &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the module of %d bytes that came is not the one of digest %q", len(code), m.Digest), Hint: "ask again, or another server"}
	}
	return m, nil
}
