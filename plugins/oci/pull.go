package oci

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Limits of an artifact.
const (
	maxManifest = 1 << 20
	maxLayers   = 8
	maxFile     = 64 << 20
)

// timeout limits one request, including its body.
const timeout = time.Minute

// Media types of manifests. An index of several platforms is not an artifact.
const manifestTypes = "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json"

// title is the annotation that holds the file name of a layer.
const title = "org.opencontainers.image.title"

// bundleFile is the file that makes a folder a bundle.
const bundleFile = "policy.yaml"

// A Client pulls artifacts.
type Client struct {
	// HTTP sends the requests; default: http.DefaultClient.
	HTTP *http.Client
	// Credentials returns the user and the password for a registry, or two empty texts;
	// nil: none are sent.
	Credentials func(registry string) (user, password string, err error)
}

type descriptor struct {
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations"`
}

type manifest struct {
	Layers    []descriptor      `json:"layers"`
	Manifests []json.RawMessage `json:"manifests"` // of an index
}

// A StatusError is a response of a registry other than success.
type StatusError struct {
	URL    string
	Status int

	challenge string // of the authentication that is required
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// Pull stores the files of an artifact in a folder below dir that is named after the
// digest of its manifest, unless they are there already. It returns the path of the module
// or bundle. A reference by digest needs no request then.
func (c *Client) Pull(ctx context.Context, r *Reference, dir string) (string, error) {
	if r.Digest != "" {
		if path, err := find(filepath.Join(dir, folder(r.Digest))); err == nil {
			return path, nil
		}
	}
	p := &puller{client: c, ref: r}
	text, digest, err := p.manifest(ctx)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, folder(digest))
	if path, err := find(to); err == nil {
		return path, nil
	}
	var m manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("manifest %s: %w", digest, err)
	}
	names, err := m.files()
	if err != nil {
		return "", fmt.Errorf("manifest %s: %w", digest, err)
	}
	part, err := os.MkdirTemp(dir, "pull-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(part) }() // nothing to remove after the rename
	for i, l := range m.Layers {
		if names[i] == "" {
			continue
		}
		text, err := p.blob(ctx, &l)
		if err != nil {
			return "", fmt.Errorf("layer %s: %w", names[i], err)
		}
		if err := os.WriteFile(filepath.Join(part, names[i]), text, 0o600); err != nil {
			return "", err
		}
	}
	if err := os.Rename(part, to); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return find(to)
}

// folder returns the name of the folder of a digest.
func folder(digest string) string { return strings.ReplaceAll(digest, ":", "-") }

// find returns the bundle or the module in a folder.
func find(dir string) (string, error) {
	if _, err := os.Stat(filepath.Join(dir, bundleFile)); err == nil {
		return dir, nil
	}
	modules, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err == nil && len(modules) != 1 {
		err = fmt.Errorf("%s: neither %s nor a single .wasm file", dir, bundleFile)
	}
	if err != nil {
		return "", err
	}
	return modules[0], nil
}

// files returns the file name of each layer, or "" for layers that are not files of a
// policy.
func (m *manifest) files() ([]string, error) {
	if len(m.Manifests) > 0 {
		return nil, errors.New("an index of several images is not a policy")
	}
	if len(m.Layers) > maxLayers {
		return nil, fmt.Errorf("%d layers: at most %d are allowed", len(m.Layers), maxLayers)
	}
	var names []string
	modules, bundle := 0, false
	for _, l := range m.Layers {
		name := l.Annotations[title]
		switch {
		case name != "" && (name != filepath.Base(name) || strings.HasPrefix(name, ".") || slices.Contains(names, name)):
			return nil, fmt.Errorf("invalid file name %.100q", name)
		case l.Size > maxFile || !digestForm.MatchString(l.Digest):
			return nil, fmt.Errorf("layer %.100q has %d bytes and digest %.100q: expected at most %d bytes and a SHA-256 digest", name, l.Size, l.Digest, int64(maxFile))
		case strings.HasSuffix(name, ".wasm"):
			modules++
		case name == bundleFile:
			bundle = true
		}
		names = append(names, name)
	}
	if !bundle && modules != 1 {
		return nil, fmt.Errorf("no layer is named %s or *.wasm by the annotation %s", bundleFile, title)
	}
	return names, nil
}

// A puller pulls one artifact.
type puller struct {
	client        *Client
	ref           *Reference
	authorization string // header that the registry has accepted
}

// manifest returns the manifest and its digest.
func (p *puller) manifest(ctx context.Context) (text []byte, digest string, err error) {
	text, err = p.get(ctx, "/manifests/"+p.ref.version(), manifestTypes, maxManifest)
	if err != nil {
		return nil, "", err
	}
	digest = digestOf(text)
	if p.ref.Digest != "" && digest != p.ref.Digest {
		return nil, "", fmt.Errorf("the registry returned a manifest with the digest %s instead of %s", digest, p.ref.Digest)
	}
	return text, digest, nil
}

// blob returns the content of a layer.
func (p *puller) blob(ctx context.Context, l *descriptor) ([]byte, error) {
	text, err := p.get(ctx, "/blobs/"+l.Digest, "", l.Size)
	if err == nil && digestOf(text) != l.Digest {
		err = fmt.Errorf("the content has the digest %s instead of %s", digestOf(text), l.Digest)
	}
	return text, err
}

func digestOf(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// get returns the body of a resource of the repository, of at most a number of bytes. If
// the registry requires it, the request is repeated with authorization.
func (p *puller) get(ctx context.Context, path, accept string, most int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	url := p.ref.base() + "/v2/" + p.ref.Repository + path
	text, err := p.client.fetch(ctx, url, accept, p.authorization, most)
	refused, ok := errors.AsType[*StatusError](err)
	if !ok || refused.Status != http.StatusUnauthorized {
		return text, err
	}
	if p.authorization, err = p.client.authorize(ctx, p.ref, refused.challenge); err != nil {
		return nil, err
	}
	return p.client.fetch(ctx, url, accept, p.authorization, most)
}

// fetch returns the body of a response, of at most a number of bytes. The client drops the
// authorization when a registry redirects to another host.
func (c *Client) fetch(ctx context.Context, url, accept, authorization string, most int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	client := c.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // opened for reading only
	if resp.StatusCode != http.StatusOK {
		return nil, &StatusError{URL: url, Status: resp.StatusCode, challenge: resp.Header.Get("WWW-Authenticate")}
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s: more than %d bytes", url, most)
	}
	return text, err
}
