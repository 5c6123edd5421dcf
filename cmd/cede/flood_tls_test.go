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
	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// clientHello is the start of a TLS client hello: a record header that announces 512 bytes.
const clientHello = "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"

// handshakeFloods are clients of a TLS listener that stall before, during or after the
// handshake.
var handshakeFloods = []struct {
	name string
	do   func(conn net.Conn, c *tls.Config)
}{
	{"no handshake", func(net.Conn, *tls.Config) {}},
	{"incomplete handshake", func(c net.Conn, _ *tls.Config) { _, _ = io.WriteString(c, clientHello) }},
	{"handshake byte by byte", func(c net.Conn, _ *tls.Config) {
		for _, b := range []byte(clientHello + strings.Repeat("\x00", 1000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond) // a slow client
		}
	}},
	{"handshake without request", func(c net.Conn, conf *tls.Config) { _ = tls.Client(c, conf).Handshake() }},
	{"handshake and incomplete header", func(c net.Conn, conf *tls.Config) {
		_, _ = io.WriteString(tls.Client(c, conf), "GET / HTTP/1.1\r\nHost: cede\r\n")
	}},
	{"plain text", func(c net.Conn, _ *tls.Config) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cede\r\n\r\n") }},
}

// The server closes TLS connections that stall and serves regular clients meanwhile.
func TestSecurity_DisconnectsStalledHandshakes(t *testing.T) {
	t.Parallel()
	callers := soak.Count(20, 200)
	dir := t.TempDir()
	ca := newTestAuthority(t, filepath.Join(dir, "tls"))
	cert, key := ca.issue("server", "127.0.0.1", serverUses...)
	d := newServer(t, "", fmt.Sprintf("%s\ntls: {cert: %q, key: %q, ca: %q}", fullLogConfig, cert, key, ca.caFile()))
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), ":4646")
	d.url = "https://" + host + ":4646"
	d.start()
	pem, err := os.ReadFile(ca.caFile())
	must(t, err)
	conf := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
	conf.RootCAs.AppendCertsFromPEM(pem)
	c, err := client.New(client.Config{Address: d.url, CACert: ca.caFile(), ServerName: "127.0.0.1"})
	must(t, err)
	defer c.Close()
	before := residentMemory(d.cmd.Process.Pid)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var all sync.WaitGroup
		for _, h := range handshakeFloods {
			for range callers {
				all.Go(func() { runHandshake(t, host+":4646", h.name, func(conn net.Conn) { h.do(conn, conf) }) })
			}
		}
		all.Wait()
	}()
	for i, flooded := 0, true; flooded; i++ {
		if _, err := c.Jobs().Register(t.Context(), minimalJob(fmt.Sprint("job-", i)), nil); err != nil {
			t.Errorf("request failed during the flood: %v", err)
		}
		select {
		case <-over:
			flooded = false
		case <-time.After(500 * time.Millisecond): // pause between two requests
		}
	}
	if after := residentMemory(d.cmd.Process.Pid); after > before+300<<20 {
		t.Errorf("resident memory grew from %d to %d MiB", before>>20, after>>20)
	}
	d.stop()
}

// runHandshake runs one stalling client and verifies that the server disconnects it.
func runHandshake(t *testing.T, address, name string, do func(net.Conn)) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return // the server refused the connection
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	do(conn)
	if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
		t.Errorf("connection with %s was not closed", name)
	}
}
