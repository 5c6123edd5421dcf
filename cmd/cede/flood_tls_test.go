package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/client"
)

// hello is how every TLS client begins: a record that says it has 512 bytes.
const hello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

// handshakes is what strangers do to a listener that encrypts, before or after they
// have shaken hands.
var handshakes = []struct {
	name string
	do   func(conn net.Conn, c *tls.Config)
}{
	{"never begins its handshake", func(net.Conn, *tls.Config) {}},
	{"never ends its handshake", func(c net.Conn, _ *tls.Config) { _, _ = io.WriteString(c, hello) }},
	{"shakes hands a byte at a time", func(c net.Conn, _ *tls.Config) {
		for _, b := range []byte(hello + strings.Repeat("\x00", 1000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // a client that is slow
		}
	}},
	{"shakes hands and says nothing", func(c net.Conn, conf *tls.Config) { _ = tls.Client(c, conf).Handshake() }},
	{"shakes hands and does not end its header", func(c net.Conn, conf *tls.Config) {
		_, _ = io.WriteString(tls.Client(c, conf), "GET / HTTP/1.1\r\nHost: cede\r\n")
	}},
	{"speaks plain text", func(c net.Conn, _ *tls.Config) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cede\r\n\r\n") }},
}

// Handshakes that never end are cut off like everything else that never ends, and
// whoever shakes hands in earnest is served meanwhile.
func TestSecurity_FloodsOfHandshakesAreSentAway(t *testing.T) {
	callers := 20
	if os.Getenv("CEDE_SOAK") != "" {
		callers = 200
	}
	dir := t.TempDir()
	ca := newTestAuthority(t, filepath.Join(dir, "tls"))
	cert, key := ca.issue("server", "127.0.0.1", serverUses...)
	d := serverAt(t, "", fmt.Sprintf("%s\ntls: {cert: %q, key: %q, ca: %q}", kept, cert, key, ca.ca()))
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), ":4646")
	d.url = "https://" + host + ":4646"
	d.start()
	pem, err := os.ReadFile(ca.ca())
	do(t, err)
	conf := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	conf.RootCAs.AppendCertsFromPEM(pem)
	c, err := client.New(client.Config{Address: d.url, CACert: ca.ca(), ServerName: "127.0.0.1"})
	do(t, err)
	defer c.Close()
	before := memoryOf(d.cmd.Process.Pid)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var all sync.WaitGroup
		for _, h := range handshakes {
			for range callers {
				all.Go(func() { shake(t, host+":4646", h.name, func(conn net.Conn) { h.do(conn, conf) }) })
			}
		}
		all.Wait()
	}()
	for i, flooded := 0, true; flooded; i++ {
		if _, err := c.Jobs().Register(t.Context(), aJob(fmt.Sprint("job-", i)), nil); err != nil {
			t.Errorf("meanwhile nobody is served: %v", err)
		}
		select {
		case <-over:
			flooded = false
		case <-time.After(500 * time.Millisecond): // between two requests
		}
	}
	if after := memoryOf(d.cmd.Process.Pid); after > before+300<<20 {
		t.Errorf("%d MiB were %d before", after>>20, before>>20)
	}
	d.stop()
}

// shake is one stranger, who is to be sent away.
func shake(t *testing.T, address, name string, do func(net.Conn)) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // sent away before it came in
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(patience))
	do(conn)
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Errorf("who %s is never sent away", name)
	}
}
