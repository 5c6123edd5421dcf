package extender

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// ServiceAccount is the directory with the credentials of a pod's service account.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster returns a binder for a process that runs in a pod, or nil if it does not.
// The token is read for each binding, because Kubernetes rotates it.
func InCluster(getenv func(string) string, dir string) (*APIBinder, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // pod without a service account
	}
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s: no valid certificate found", filepath.Join(dir, "ca.crt"))
	}
	return &APIBinder{
		URL: "https://" + net.JoinHostPort(host, port),
		Token: func() (string, error) {
			token, err := os.ReadFile(filepath.Join(dir, "token"))
			return strings.TrimSpace(string(token)), err
		},
		Client: &http.Client{
			Timeout:   4 * time.Second, // kube-scheduler gives up after 5s
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
	}, nil
}
