package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// floods are abusive uses of a listener. Each runs until the server closes the
// connection.
var floods = []struct {
	name string
	do   func(conn net.Conn)
}{
	{"idle connection", func(net.Conn) {}},
	{"incomplete request", func(c net.Conn) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n") }},
	{"endless headers", func(c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\n")
		for i := range 1 << 20 {
			if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	}},
	{"endless header value", func(c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
		_, _ = io.Copy(c, io.LimitReader(endlessReader{}, 1<<30))
	}},
	{"endless body", func(c net.Conn) {
		_, _ = io.WriteString(c, "POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n")
		_, _ = io.Copy(c, io.LimitReader(endlessReader{}, 1<<30))
	}},
	{"random bytes", func(c net.Conn) {
		for range 1 << 14 {
			if _, err := c.Write(bytes.Repeat([]byte{0xff, 0x00, 0x7f, 'R', 'P'}, 13_000)); err != nil {
				return
			}
		}
	}},
}

// flood opens the given number of connections for each kind of flood at once and returns
// when the server has closed all of them.
func flood(t *testing.T, address string, callers int) {
	t.Helper()
	var all sync.WaitGroup
	for _, f := range floods {
		for range callers {
			all.Go(func() {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					return // the server refused the connection
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(testTimeout))
				f.do(conn)
				if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
					t.Errorf("%s: connection with %s was not closed", address, f.name)
				}
			})
		}
	}
	all.Wait()
}

// residentMemory returns the resident set size of a process in bytes, or 0 if unknown.
func residentMemory(pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			n, _ := strconv.Atoi(fields[1])
			return n << 10
		}
	}
	return 0
}

// The server closes the connections of clients that flood a listener. It serves other
// clients meanwhile, and its memory stays bounded.
func TestSecurity_DisconnectsFloodingClients(t *testing.T) {
	t.Parallel()
	callers := soak.Count(20, 200)
	d := newServer(t, "", fullLogConfig)
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), ":4646")
	d.env = []string{"CEDE_LISTEN__GOSSIP=" + host + ":4648", "CEDE_LISTEN__METRICS=" + host + ":4649"}
	d.start()
	ready := func() bool {
		h, err := d.client().Status().Health(t.Context())
		return err == nil && h.OK
	}
	eventually(t, "the server is ready", ready)
	before := residentMemory(d.cmd.Process.Pid)
	over := make(chan struct{})
	go func() {
		defer close(over)
		var listeners sync.WaitGroup
		for _, port := range []string{"4646", "4647", "4648", "4649"} { // the API, servers, gossip, metrics
			listeners.Go(func() { flood(t, host+":"+port, callers) })
		}
		listeners.Wait()
	}()
	for i, flooded := 0, true; flooded; i++ {
		if _, err := d.client().Jobs().Register(t.Context(), minimalJob(fmt.Sprint("job-", i)), nil); err != nil {
			t.Errorf("request failed during the flood: %v", err)
		}
		select {
		case <-over:
			flooded = false
		case <-time.After(500 * time.Millisecond): // pause between two requests
		}
	}
	if !ready() {
		t.Error("server is not ready after the flood")
	}
	if after := residentMemory(d.cmd.Process.Pid); after > before+300<<20 {
		t.Errorf("resident memory grew from %d to %d MiB", before>>20, after>>20)
	}
	d.stop()
}

// The server answers requests that exceed a limit of size or rate with a code, a message
// and a hint. If the limit of connections is reached, new clients wait until the server
// has closed idle ones.
func TestSecurity_ReportsExceededLimits(t *testing.T) {
	t.Parallel()
	d := newServer(t, "", fullLogConfig)
	d.env = []string{"CEDE_LIMITS__RATE=1", "CEDE_LIMITS__BURST=5", "CEDE_LIMITS__CONNECTIONS=20"}
	d.start()
	address := strings.TrimPrefix(d.url, "http://")
	ask := func(request string) (int, string) {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		must(t, err)
		defer func() { _ = conn.Close() }()
		must(t, conn.SetDeadline(time.Now().Add(testTimeout)))
		_, _ = io.WriteString(conn, request) // the server may close the connection during the write
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err.Error()
		}
		text, _ := io.ReadAll(resp.Body) // as far as it was received
		must(t, resp.Body.Close())
		return resp.StatusCode, string(text)
	}
	if code, text := ask("POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"); code != http.StatusRequestEntityTooLarge || !isStructuredError(text) {
		t.Errorf("body of 100 MB: status %d, %s", code, text)
	}
	// The server does not read a refused header to its end, so the response may be lost.
	if code, text := ask("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"); code != 0 && code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("header of 100 KB: status %d, %s", code, text)
	}
	for range 20 {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	code, text := 0, ""
	for range 10 {
		if code, text = ask("GET /v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); code != http.StatusOK {
			break
		}
	}
	if code != http.StatusTooManyRequests || !strings.Contains(text, `"Code":"rate_limited"`) || !isStructuredError(text) {
		t.Errorf("requests above the rate limit: status %d, %s", code, text)
	}
	if code, _ := ask("GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); code != http.StatusOK {
		t.Errorf("readiness during rate limiting: status %d, want 200", code)
	}
	d.stop()
}

// isStructuredError reports whether a response body has a code, a message and a hint.
func isStructuredError(text string) bool {
	return strings.Contains(text, `"Code":"`) && strings.Contains(text, `"Message":"`) && strings.Contains(text, `"Hint":"`)
}
