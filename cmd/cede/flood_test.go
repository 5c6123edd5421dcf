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
)

// floods is what strangers do to a listener. Each goes on until the server has had
// enough of it, and returns then.
var floods = []struct {
	name string
	do   func(conn net.Conn)
}{
	{"says nothing", func(net.Conn) {}},
	{"begins and does not go on", func(c net.Conn) { _, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cede\r\n") }},
	{"sends headers without end", func(c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cede\r\n")
		for i := range 1 << 20 {
			if _, err := fmt.Fprintf(c, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	}},
	{"sends one header without end", func(c net.Conn) {
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: cede\r\nX-Long: ")
		_, _ = io.Copy(c, io.LimitReader(endless{}, 1<<30))
	}},
	{"sends a body without end", func(c net.Conn) {
		_, _ = io.WriteString(c, "POST /v1/jobs HTTP/1.1\r\nHost: cede\r\nContent-Length: 1000000000\r\n\r\n")
		_, _ = io.Copy(c, io.LimitReader(endless{}, 1<<30))
	}},
	{"sends rubbish", func(c net.Conn) {
		for range 1 << 14 {
			if _, err := c.Write(bytes.Repeat([]byte{0xff, 0x00, 0x7f, 'R', 'P'}, 13_000)); err != nil {
				return
			}
		}
	}},
}

// flood has so many callers of each kind come at once, and waits until the server
// has sent all of them away.
func flood(t *testing.T, address string, callers int) {
	t.Helper()
	var all sync.WaitGroup
	for _, f := range floods {
		for range callers {
			all.Go(func() {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					return // sent away before it came in
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetDeadline(time.Now().Add(patience))
				f.do(conn)
				if _, err := io.Copy(io.Discard, conn); os.IsTimeout(err) {
					t.Errorf("%s: who %s is never sent away", address, f.name)
				}
			})
		}
	}
	all.Wait()
}

// memoryOf is what a process has of the machine's memory, in bytes; 0: nobody knows.
func memoryOf(pid int) int {
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

// Whoever floods a listener is sent away, whatever it does, and the server serves
// others before, meanwhile and after, with the memory that it had.
func TestSecurity_FloodsOfStrangersAreSentAway(t *testing.T) {
	callers := 20
	if os.Getenv("CEDE_SOAK") != "" {
		callers = 200
	}
	d := serverAt(t, "", kept)
	host := strings.TrimSuffix(strings.TrimPrefix(d.url, "http://"), ":4646")
	t.Setenv("CEDE_LISTEN__GOSSIP", host+":4648")
	t.Setenv("CEDE_LISTEN__METRICS", host+":4649")
	d.start()
	ready := func() bool {
		h, err := d.client().Status().Health(t.Context())
		return err == nil && h.OK
	}
	eventually(t, "the server leads", ready)
	before := memoryOf(d.cmd.Process.Pid)
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
		if _, err := d.client().Jobs().Register(t.Context(), aJob(fmt.Sprint("job-", i)), nil); err != nil {
			t.Errorf("meanwhile nobody is served: %v", err)
		}
		select {
		case <-over:
			flooded = false
		case <-time.After(500 * time.Millisecond): // between two requests
		}
	}
	if !ready() {
		t.Error("it is not ready")
	}
	if after := memoryOf(d.cmd.Process.Pid); after > before+300<<20 {
		t.Errorf("%d MiB were %d before", after>>20, before>>20)
	}
	d.stop()
}

// What is too large or comes too often is answered with a code, words and a hint;
// beyond the limit of connections callers wait until those who say nothing are sent
// away.
func TestSecurity_LimitsAreAnsweredInWords(t *testing.T) {
	d := serverAt(t, "", kept)
	t.Setenv("CEDE_LIMITS__RATE", "1")
	t.Setenv("CEDE_LIMITS__BURST", "5")
	t.Setenv("CEDE_LIMITS__CONNECTIONS", "20")
	d.start()
	address := strings.TrimPrefix(d.url, "http://")
	ask := func(request string) (int, string) {
		t.Helper()
		conn, err := net.Dial("tcp", address)
		do(t, err)
		defer func() { _ = conn.Close() }()
		do(t, conn.SetDeadline(time.Now().Add(patience)))
		_, _ = io.WriteString(conn, request) // it may be cut off amid it
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0, err.Error()
		}
		text, _ := io.ReadAll(resp.Body) // as far as it came
		do(t, resp.Body.Close())
		return resp.StatusCode, string(text)
	}
	if code, text := ask("POST /v1/jobs HTTP/1.1\r\nHost: cede\r\nContent-Length: 100000000\r\n\r\n"); code != http.StatusRequestEntityTooLarge || !inWords(text) {
		t.Errorf("a body of 100 MB: %d %s", code, text)
	}
	// The header that is refused is not read to its end, so the answer may be lost with it.
	if code, text := ask("GET /v1/jobs HTTP/1.1\r\nHost: cede\r\nX: " + strings.Repeat("x", 100<<10) + "\r\n\r\n"); code != 0 && code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 100 KB: %d %s", code, text)
	}
	for range 20 {
		conn, err := net.Dial("tcp", address)
		do(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	code, text := 0, ""
	for range 10 {
		if code, text = ask("GET /v1/jobs HTTP/1.1\r\nHost: cede\r\nConnection: close\r\n\r\n"); code != http.StatusOK {
			break
		}
	}
	if code != http.StatusTooManyRequests || !strings.Contains(text, `"Code":"rate_limited"`) || !inWords(text) {
		t.Errorf("too often: %d %s", code, text)
	}
	if code, _ := ask("GET /readyz HTTP/1.1\r\nHost: cede\r\nConnection: close\r\n\r\n"); code != http.StatusOK {
		t.Errorf("it is not ready: %d", code)
	}
	d.stop()
}

// inWords is whether an answer says what is wrong, and what to do.
func inWords(text string) bool {
	return strings.Contains(text, `"Code":"`) && strings.Contains(text, `"Message":"`) && strings.Contains(text, `"Hint":"`)
}
