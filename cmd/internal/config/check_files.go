package config

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"time"
)

// checkFiles checks the files that the process reads at start.
func checkFiles(c *Config, bad report) {
	read := func(key, name string) []byte {
		if name == "" {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			bad(key, "%s: %v: check the path and that the user of the process can read it", name, cause(err))
		}
		return text
	}
	checkPair(&c.TLS, read("tls.cert", c.TLS.Cert), read("tls.key", c.TLS.Key), bad)
	if text := read("tls.ca", c.TLS.CA); text != nil && !x509.NewCertPool().AppendCertsFromPEM(text) {
		bad("tls.ca", "%s: contains no CA certificate in PEM format", c.TLS.CA)
	}
	for _, name := range c.Policy.Roots {
		_ = read("policy.roots", name) // the signature check reports an invalid key
	}
}

// checkPair checks that a certificate and its key match, if both could be read.
func checkPair(t *TLS, cert, key []byte, bad report) {
	readable := true
	for _, f := range []struct {
		key, name, what string
		text            []byte
	}{{"tls.cert", t.Cert, "certificate", cert}, {"tls.key", t.Key, "key", key}} {
		block, _ := pem.Decode(f.text)
		if block == nil && f.text != nil {
			bad(f.key, "%s: contains no %s in PEM format", f.name, f.what)
		}
		readable = readable && block != nil
	}
	if !readable {
		return
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		bad("tls.key", "%s does not belong to tls.cert, %s: %v", t.Key, t.Cert, err)
		return
	}
	if pair.Leaf != nil && time.Now().After(pair.Leaf.NotAfter) {
		bad("tls.cert", "%s: it expired on %s: have a new one signed", t.Cert, pair.Leaf.NotAfter.Format(time.DateOnly))
	}
}
