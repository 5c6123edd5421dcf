package oci

import (
	"fmt"
	"net"
	"regexp"
	"strings"
)

// Scheme is the prefix of references.
const Scheme = "oci://"

// A Reference names an artifact in a registry.
type Reference struct {
	Registry   string // host, with a port if it is not 443
	Repository string
	Tag        string // "" if there is a digest
	Digest     string // sha256:HEX; "" if the tag decides
}

var (
	repositoryForm = regexp.MustCompile(`^[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*$`)
	tagForm        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
	digestForm     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
	registryForm   = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$|^\[[0-9a-f:]+\](:[0-9]{1,5})?$`)
)

// ParseReference parses oci://REGISTRY/REPOSITORY[:TAG][@DIGEST]. A tag or a digest is
// required; if there are both the digest decides.
func ParseReference(text string) (Reference, error) {
	rest, ok := strings.CutPrefix(text, Scheme)
	invalid := func(why string) (Reference, error) {
		return Reference{}, fmt.Errorf("invalid reference %.200q: %s; write oci://REGISTRY/NAME@sha256:DIGEST or oci://REGISTRY/NAME:TAG", text, why)
	}
	if !ok {
		return invalid("must start with " + Scheme)
	}
	var r Reference
	rest, r.Digest, _ = strings.Cut(rest, "@")
	r.Registry, r.Repository, _ = strings.Cut(rest, "/")
	r.Repository, r.Tag, _ = strings.Cut(r.Repository, ":")
	switch {
	case !registryForm.MatchString(r.Registry):
		return invalid("not a valid registry")
	case !repositoryForm.MatchString(r.Repository) || len(r.Repository) > 255:
		return invalid("not a valid repository")
	case r.Tag == "" && r.Digest == "":
		return invalid("tag or digest is missing")
	case r.Tag != "" && !tagForm.MatchString(r.Tag):
		return invalid("not a valid tag")
	case r.Digest != "" && !digestForm.MatchString(r.Digest):
		return invalid("not a valid digest")
	}
	if r.Digest != "" {
		r.Tag = ""
	}
	return r, nil
}

// version returns the tag or digest of the manifest in the registry.
func (r *Reference) version() string {
	if r.Digest != "" {
		return r.Digest
	}
	return r.Tag
}

// base returns the URL of the registry. Only registries on loopback are reached without
// TLS.
func (r *Reference) base() string {
	host, _, err := net.SplitHostPort(r.Registry)
	if err != nil {
		host = r.Registry
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); host == "localhost" || ip != nil && ip.IsLoopback() {
		return "http://" + r.Registry
	}
	return "https://" + r.Registry
}
