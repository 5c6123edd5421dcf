package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"time"
)

// MaxModule is the size of the largest module that servers take, in bytes.
const MaxModule = 8 << 20

// The parts of a load's body.
const (
	partRequest   = "request"
	partManifest  = "manifest"
	partModule    = "module"
	partSignature = "signature"
)

// Policies is what can be done with policies; Client.Policies makes one.
type Policies struct{ c *Client }

// Load brings a version of a policy to every server. Nothing is decided by it
// until it is activated.
func (p Policies) Load(ctx context.Context, load *PolicyLoad) (*PolicyVersion, error) {
	if len(load.Module) > MaxModule {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the module has %d bytes: at most %d are taken", len(load.Module), MaxModule)}
	}
	r := p.c.call(http.MethodPost, "policies")
	if load.Wait > 0 {
		r.query.Set("wait", load.Wait.String())
	}
	reader, writer := io.Pipe()
	form := multipart.NewWriter(writer)
	go func() { _ = writer.CloseWithError(writeLoad(form, load)) }()
	r.stream, r.contentType = reader, form.FormDataContentType()
	out := &PolicyVersion{}
	_, err := r.do(ctx, out)
	_ = reader.Close() // so that the writer ends, whatever the server read
	return out, err
}

// writeLoad writes the body of a load; it travels in chunks.
func writeLoad(form *multipart.Writer, load *PolicyLoad) error {
	request, err := json.Marshal(load)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name, kind string
		data       []byte
	}{
		{partRequest, "application/json", request},
		{partManifest, "application/yaml", load.Manifest},
		{partSignature, "application/octet-stream", load.Signature},
		{partModule, "application/wasm", load.Module},
	} {
		if len(part.data) == 0 {
			continue
		}
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name=%q; filename=%q`, part.name, part.name))
		h.Set("Content-Type", part.kind)
		w, err := form.CreatePart(h)
		if err != nil {
			return err
		}
		if _, err := io.Copy(w, bytes.NewReader(part.data)); err != nil {
			return err
		}
	}
	return form.Close()
}

// List lists policies, ascending by name.
func (p Policies) List(ctx context.Context, q *QueryOptions) (list []*PolicyStub, meta *QueryMeta, err error) {
	meta, err = p.c.get(ctx, q, &list, "policies")
	return list, meta, err
}

// Status returns a policy with its versions.
func (p Policies) Status(ctx context.Context, name string, q *QueryOptions) (*PolicyStatus, *QueryMeta, error) {
	out := &PolicyStatus{}
	meta, err := p.c.get(ctx, q, out, "policy", name)
	return out, meta, err
}

// Shadow runs a version on live decisions: what it would have done otherwise
// is recorded, and nothing applied. The version "" ends that.
func (p Policies) Shadow(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "shadow")
}

// Activate lets a version decide, once every server has checked it.
func (p Policies) Activate(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "activate")
}

// Try is Activate for a while: the version is rolled back after it, unless it is
// activated again before.
func (p Policies) Try(ctx context.Context, name, version string, trial time.Duration) (*PolicyStatus, error) {
	out := &PolicyStatus{}
	return out, p.c.write(ctx, http.MethodPut, nil, false, &PolicyVersionRequest{Version: version, For: trial}, out, "policy", name, "activate")
}

// Reset lets a version be activated again that was taken out of service because
// of its faults; "": every one of the policy.
func (p Policies) Reset(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "reset")
}

// Rollback lets the version decide that decided before.
func (p Policies) Rollback(ctx context.Context, name string) (*PolicyStatus, error) {
	return p.change(ctx, name, "", "rollback")
}

// Unload forgets a version that neither decides nor is shadowed.
func (p Policies) Unload(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "unload")
}

// Differences lists what the shadow of a policy would have done otherwise, on
// the server that answers, the newest first.
func (p Policies) Differences(ctx context.Context, name string, q *QueryOptions) (list []*PolicyDifference, meta *QueryMeta, err error) {
	meta, err = p.c.get(ctx, q, &list, "policy", name, "differences")
	return list, meta, err
}

func (p Policies) change(ctx context.Context, name, version, verb string) (*PolicyStatus, error) {
	out := &PolicyStatus{}
	return out, p.c.write(ctx, http.MethodPut, nil, false, &PolicyVersionRequest{Version: version}, out, "policy", name, verb)
}
