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

// MaxModule is the maximum size of a module in bytes.
const MaxModule = 8 << 20

// The parts of the body of a load request.
const (
	partRequest   = "request"
	partManifest  = "manifest"
	partModule    = "module"
	partSignature = "signature"
)

// Policies holds the calls for policies; see Client.Policies.
type Policies struct{ c *Client }

// Load loads a version of a policy on every server. It makes no decisions until it is
// activated.
func (p Policies) Load(ctx context.Context, load *PolicyLoad) (*PolicyVersion, error) {
	if len(load.Module) > MaxModule {
		return nil, &Error{Code: CodeTooLarge, Message: fmt.Sprintf("the module has %d bytes, the maximum is %d", len(load.Module), MaxModule)}
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
	_ = reader.Close() // ends the writer, even if the server did not read the whole body
	return out, err
}

// writeLoad writes the body of a load request, which is sent in chunks.
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

// Shadow runs a version on live decisions: differences from the active version are
// recorded and not applied. The version "" ends the shadow run.
func (p Policies) Shadow(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "shadow")
}

// Activate makes a version decide, once every server has checked it.
func (p Policies) Activate(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "activate")
}

// Try is Activate for a limited time: the version is rolled back after it, unless it
// is activated again before.
func (p Policies) Try(ctx context.Context, name, version string, trial time.Duration) (*PolicyStatus, error) {
	out := &PolicyStatus{}
	return out, p.c.write(ctx, http.MethodPut, nil, true, &PolicyVersionRequest{Version: version, For: trial}, out, "policy", name, "activate")
}

// Trial compares a version with the active one: both decide in alternate blocks of time.
func (p Policies) Trial(ctx context.Context, name string, r *PolicyTrialRequest) (*PolicyStatus, error) {
	out := &PolicyStatus{}
	return out, p.c.write(ctx, http.MethodPut, nil, false, r, out, "policy", name, "trial")
}

// TrialCourse returns the trial of a policy with the history of a metric, such as victims.
func (p Policies) TrialCourse(ctx context.Context, name, metric string, q *QueryOptions) (*PolicyTrialCourse, *QueryMeta, error) {
	r := p.c.call(http.MethodGet, "policy", name, "trial")
	q.apply(r)
	r.query.Set("metric", metric)
	out := &PolicyTrialCourse{}
	meta, err := r.do(ctx, out)
	return out, meta, err
}

// Reset allows the activation of a version that was disabled because of its faults;
// "" means every version of the policy.
func (p Policies) Reset(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "reset")
}

// Rollback activates the previously active version.
func (p Policies) Rollback(ctx context.Context, name string) (*PolicyStatus, error) {
	return p.change(ctx, name, "", "rollback")
}

// Unload removes a version that is neither active nor a shadow.
func (p Policies) Unload(ctx context.Context, name, version string) (*PolicyStatus, error) {
	return p.change(ctx, name, version, "unload")
}

// Differences lists the decisions in which a policy's shadow differed, on the
// responding server, newest first.
func (p Policies) Differences(ctx context.Context, name string, q *QueryOptions) (list []*PolicyDifference, meta *QueryMeta, err error) {
	meta, err = p.c.get(ctx, q, &list, "policy", name, "differences")
	return list, meta, err
}

func (p Policies) change(ctx context.Context, name, version, verb string) (*PolicyStatus, error) {
	out := &PolicyStatus{}
	repeatable := verb != "rollback" && verb != "unload" // a second one has another effect
	return out, p.c.write(ctx, http.MethodPut, nil, repeatable, &PolicyVersionRequest{Version: version}, out, "policy", name, verb)
}
