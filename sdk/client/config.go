package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// DefaultAddress is where a server listens unless it is told otherwise.
const DefaultAddress = "http://127.0.0.1:4646"

// Config says which servers to ask, and who is asking.
type Config struct {
	Address    string // URL of a server, or of several separated by commas, each tried when the one before does not answer, and the first request goes to one that does; default: DefaultAddress
	Token      string // secret; "": anonymous
	CACert     string // file (PEM) of the authority that signed the servers' certificates; "": the system's
	ClientCert string // file (PEM); "": none
	ClientKey  string // file (PEM)
	ServerName string // name that the servers' certificates bear; "": the host of the address
	Namespace  string // of requests that name none; "": the server's default

	HTTPClient *http.Client  // its transport is used as it is, and the TLS files above are not read; nil: one of this package's
	Retries    int           // further attempts of what may be repeated; 0: 3, and for 3 s while servers elect a leader, negative: none
	Silence    time.Duration // how long one of several servers may take to begin its answer, beyond a query's Wait, before the next is asked; default: 10 s, negative: any time
	RetryDelay time.Duration // before the first further attempt, then doubled, with chance; default: 200 ms
	UserAgent  string        // default: cede-client

	Stale      bool // reads that do not say are answered by any server from what it has
	Consistent bool // reads that do not say are answered once the leader made sure that it still leads

	// Heard is told what each answer to a read says of the state that was read, and who
	// answered. It may be called by several goroutines at a time. nil: nobody is told.
	Heard func(address string, meta QueryMeta)
}

// FromEnv is the configuration that the environment gives: CEDE_ADDR,
// CEDE_TOKEN, CEDE_CACERT, CEDE_CLIENT_CERT, CEDE_CLIENT_KEY and
// CEDE_NAMESPACE.
func FromEnv() Config { return FromLookup(os.LookupEnv) }

// FromLookup is FromEnv over any environment.
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

// addresses are the servers, without a slash at the end.
func (c *Config) addresses() ([]string, error) {
	text := c.Address
	if text == "" {
		text = DefaultAddress
	}
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
			return nil, fmt.Errorf("address %q is no URL of a server: want http://HOST:PORT or https://HOST:PORT", part)
		}
		list = append(list, strings.TrimRight(u.Scheme+"://"+u.Host+u.Path, "/"))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("address %q names no server", c.Address)
	}
	return list, nil
}

// httpClient is the client to send by. It has no timeout of its own: blocking
// queries and streams are long, and callers have contexts.
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
			return nil, fmt.Errorf("CA certificate: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("CA certificate %s: no certificate in PEM form in it", c.CACert)
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
		return nil, errors.New("a client certificate needs its key, and a key its certificate")
	}
	return conf, nil
}
