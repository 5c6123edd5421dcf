package extender

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/cede-scheduler/cede/core/kube"
)

// An APIBinder creates bindings through the Kubernetes API server.
type APIBinder struct {
	URL    string                 // for example https://kubernetes.default.svc
	Token  func() (string, error) // service account token; nil: no authorization header
	Client *http.Client           // default: http.DefaultClient
}

var _ Binder = (*APIBinder)(nil)

// Bind creates a binding of the pod to the node. It returns an error if the API
// server rejects the binding.
func (b *APIBinder) Bind(ctx context.Context, args *kube.ExtenderBindingArgs) error {
	if args.PodName == "" || args.PodNamespace == "" || args.Node == "" {
		return errors.New("invalid binding: pod, namespace and node are required")
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Binding",
		"metadata": map[string]string{"name": args.PodName, "namespace": args.PodNamespace, "uid": args.PodUID},
		"target":   map[string]string{"apiVersion": "v1", "kind": "Node", "name": args.Node},
	})
	if err != nil {
		return err
	}
	at := strings.TrimRight(b.URL, "/") + "/api/v1/namespaces/" + url.PathEscape(args.PodNamespace) + "/pods/" + url.PathEscape(args.PodName) + "/binding"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if b.Token != nil {
		token, err := b.Token()
		if err != nil {
			return fmt.Errorf("read service account token: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := b.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	if resp.StatusCode/100 == 2 {
		return nil
	}
	var status struct{ Message string }
	_ = json.Unmarshal(text, &status) // the message is optional
	return fmt.Errorf("API server rejected the binding: %s %s", resp.Status, status.Message)
}
