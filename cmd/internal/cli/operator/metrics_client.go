package operator

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/sdk/client"
)

// envMetricsToken is the variable that holds the token of metrics listeners.
const envMetricsToken = "CEDE_METRICS_TOKEN"

// metricsClient reads a metrics listener. Off loopback, the listener uses TLS as the
// API does, and its own token.
type metricsClient struct {
	http.Client
	token string
}

// newMetricsClient returns a client with the trusted authorities of the API's client.
func newMetricsClient(env *cmdutil.Env, conf client.Config, token string) (*metricsClient, error) {
	c := &metricsClient{token: cmp.Or(token, env.Getenv(envMetricsToken))}
	if file, ok := strings.CutPrefix(c.token, "file:"); ok {
		var err error
		if c.token, err = env.ReadSecret(file); err != nil {
			return nil, err
		}
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: conf.ServerName}
	if conf.CACert != "" {
		pem, err := env.ReadFile(conf.CACert, 1<<20)
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs = x509.NewCertPool()
		if !t.TLSClientConfig.RootCAs.AppendCertsFromPEM(pem) {
			return nil, cmdutil.Usagef("check --cacert and CEDE_CACERT", "no PEM certificate in %s", conf.CACert)
		}
	}
	if conf.ClientCert != "" {
		cert, err := tls.LoadX509KeyPair(conf.ClientCert, conf.ClientKey)
		if err != nil {
			return nil, cmdutil.Usagef("check CEDE_CLIENT_CERT and CEDE_CLIENT_KEY", "%v", err)
		}
		t.TLSClientConfig.Certificates = []tls.Certificate{cert}
	}
	c.Transport = t
	return c, nil
}

func (c *metricsClient) fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, debugWait)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.Do(r)
	if err != nil {
		return nil, cmdutil.RootCause(err)
	}
	defer func() { _ = resp.Body.Close() }() // read-only
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics listener returned %s", resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxDebug))
}
