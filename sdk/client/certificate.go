package client

import (
	"context"
	"fmt"
	"io"
	"net/http"
)

// MaxCertificate is the maximum size of a certificate, in bytes.
const MaxCertificate = 256 << 20

// DecisionKey is the public key that verifies the certificates of a server.
type DecisionKey struct {
	ID       string // ed25519:HEX, the start of its hash
	PEM      string
	ServerID string `json:",omitempty"` // in the list of all keys
	Time     int64  `json:",omitempty"` // when the server published the key, Unix ns; in the list of all keys
}

// Certificate returns a certificate of the newest decision that evicted an allocation, or
// others for it. It requires the role operate or policy.
func (a Allocations) Certificate(ctx context.Context, id string) ([]byte, error) {
	r := a.c.call(http.MethodGet, "allocation", id, "certificate")
	r.header.Set("Accept", "application/octet-stream")
	resp, err := r.send(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { drain(resp.Body); _ = resp.Body.Close() }()
	file, err := io.ReadAll(io.LimitReader(resp.Body, MaxCertificate+1))
	if err == nil && resp.ContentLength >= 0 && int64(len(file)) != resp.ContentLength {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, &Error{Code: CodeUnavailable, Message: fmt.Sprintf("the certificate was truncated after %d bytes: %v", len(file), err), Hint: "retry"}
	}
	return file, nil
}

// DecisionKey returns the public key of the server that answers.
func (a Allocations) DecisionKey(ctx context.Context, q *QueryOptions) (out *DecisionKey, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &out, "decision-key")
	return out, meta, err
}

// DecisionKeys returns the public keys of all servers that the pool has had.
func (a Allocations) DecisionKeys(ctx context.Context, q *QueryOptions) (out []*DecisionKey, meta *QueryMeta, err error) {
	meta, err = a.c.get(ctx, q, &out, "decision-keys")
	return out, meta, err
}
