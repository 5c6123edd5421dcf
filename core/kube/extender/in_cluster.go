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

// ServiceAccount is where Kubernetes puts what a pod needs to ask its API server.
const ServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount"

// InCluster is a binder for a process that runs as a pod; nil for one that does
// not. The token is read for each binding, for Kubernetes renews it.
func InCluster(getenv func(string) string, dir string) (*APIBinder, error) {
	host, port := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // a pod without a service account
	}
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(dir, "ca.crt"))
	}
	return &APIBinder{
		URL: "https://" + net.JoinHostPort(host, port),
		Token: func() (string, error) {
			token, err := os.ReadFile(filepath.Join(dir, "token"))
			return strings.TrimSpace(string(token)), err
		},
		Client: &http.Client{
			Timeout:   4 * time.Second, // kube-scheduler waits for 5
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}},
		},
	}, nil
}
