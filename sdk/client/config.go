package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultAddress is the address on which a server listens by default.
const DefaultAddress = "http://127.0.0.1:4646"

// Config holds the addresses of the servers and the credentials of the caller.
type Config struct {
	Address    string // URL of a server, or several separated by commas; if one does not respond, the next is tried; default: DefaultAddress
	Token      string // secret; "": anonymous
	CACert     string // file (PEM) of the authority that signed the servers' certificates; "": the system's
	ClientCert string // file (PEM); "": none
	ClientKey  string // file (PEM)
	ServerName string // name in the servers' certificates; "": the host of the address
	Namespace  string // default namespace of requests; "": the server's default

	HTTPClient *http.Client  // its transport is used unchanged, and the TLS files above are ignored; nil: a client of this package
	Retries    int           // further attempts of repeatable requests; 0: 3, and for 3 s while servers elect a leader; negative: none
	Silence    time.Duration // how long one of several servers may take to start its response, beyond a query's Wait, before the next is tried; default: 10 s; negative: unlimited
	RetryDelay time.Duration // delay before the first further attempt, then doubled, with jitter; default: 200 ms
	UserAgent  string        // default: cede-client

	Stale      bool // default for reads: any server responds from its own state
	Consistent bool // default for reads: the leader verifies that it still leads first

	// Heard is called with the metadata of each response to a read and the address of
	// the server that sent it. It may be called concurrently. nil: no call.
	Heard func(address string, meta QueryMeta)
}

// FromEnv returns the configuration of the environment: CEDE_ADDR, CEDE_TOKEN,
// CEDE_CACERT, CEDE_CLIENT_CERT, CEDE_CLIENT_KEY and CEDE_NAMESPACE.
func FromEnv() Config { return FromLookup(os.LookupEnv) }

// FromLookup is FromEnv with another environment.
func FromLookup(lookup func(string) (string, bool)) Config {
	get := func(name string) string {
		value, _ := lookup(name)
		return value
	}
	return Config{
		Address:    get("CEDE_ADDR"),
		Token:      get("CEDE_TOKEN"),
		CACert:     get("CEDE_CACERT"),
		ClientCert: get("CEDE_CLIENT_CERT"),
		ClientKey:  get("CEDE_CLIENT_KEY"),
		Namespace:  get("CEDE_NAMESPACE"),
	}
}

// addresses returns the servers' URLs, without a trailing slash.
func (c *Config) addresses() ([]string, error) {
	text := c.Address
	text = cmp.Or(text, DefaultAddress)
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if !strings.Contains(part, "://") {
			part = "http://" + part
		}
		u, err := url.Parse(part)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("invalid address %q: must be http://HOST:PORT or https://HOST:PORT", part)
		}
		list = append(list, strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("invalid address %q: at least one server is required", c.Address)
	}
	return list, nil
}

// httpClient returns the HTTP client. It has no timeout of its own, because blocking
// queries and streams are long and callers have contexts.
func (c *Config) httpClient() (*http.Client, error) {
	if c.HTTPClient != nil {
		return c.HTTPClient, nil
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 16
	conf, err := c.tls()
	if err != nil {
		return nil, err
	}
	transport.TLSClientConfig = conf
	return &http.Client{Transport: transport}, nil
}

func (c *Config) tls() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.CACert != "" {
		text, err := os.ReadFile(c.CACert)
		if err != nil {
			if path, ok := errors.AsType[*fs.PathError](err); ok {
				err = path.Err // without the name of the system call
			}
			return nil, fmt.Errorf("CA certificate %s: %w", c.CACert, err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("CA certificate %s: the file holds no PEM certificate", c.CACert)
		}
	}
	switch {
	case c.ClientCert != "" && c.ClientKey != "":
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s: %w", c.ClientCert, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	case c.ClientCert != "" || c.ClientKey != "":
		return nil, errors.New("client certificate and key must be set together")
	}
	return conf, nil
}
