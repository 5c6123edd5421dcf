package rpc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// An authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{t: t, key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// issue returns a certificate for a name, or for the loopback address if name is empty.
func (a *authority) issue(name string, uses ...x509.ExtKeyUsage) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "server"}, NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: uses,
	}
	if name == "" {
		form.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	} else {
		form.DNSNames = []string{name}
	}
	raw, err := x509.CreateCertificate(rand.Reader, form, a.cert, &key.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

var bothUses = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}

func (a *authority) credentials(cert *tls.Certificate, name string) *Credentials {
	return &Credentials{Certificate: func() *tls.Certificate { return cert }, Authority: func() *x509.CertPool { return a.pool }, Name: name}
}

// fakeHandler returns fixed results and records its calls.
type fakeHandler struct {
	mu      sync.Mutex
	status  Status
	err     error
	updates []DeliveryUpdate
	results []EvalResults
	waiting chan struct{}
	gone    chan error
}

func (s *fakeHandler) Status(_ context.Context, begin string) (*Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.status
	st.Promised = begin != ""
	return &st, s.err
}

func (s *fakeHandler) Dequeue(ctx context.Context, most int, wait time.Duration) (*Deliveries, error) {
	if s.waiting == nil {
		return &Deliveries{Evals: []byte("evals"), List: []Delivery{{Token: 1<<63 + 5, WaitIndex: uint64(wait), Attempt: most, Trace: "t"}}, Term: 7}, s.err
	}
	close(s.waiting)
	<-ctx.Done()
	s.gone <- ctx.Err()
	return nil, ctx.Err()
}

func (s *fakeHandler) UpdateDelivery(_ context.Context, x DeliveryUpdate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updates = append(s.updates, x)
	return s.err
}

func (s *fakeHandler) SubmitPlan(_ context.Context, plan []byte) ([]byte, error) {
	return append(plan, " committed"...), s.err
}

func (s *fakeHandler) WriteEvals(_ context.Context, e EvalResults) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, e)
	return s.err
}

func (s *fakeHandler) Apply(context.Context, []byte) (Applied, error) {
	return Applied{Index: 9, RefusalCode: "conflict", Refusal: "no"}, s.err
}

func (s *fakeHandler) Keyring(_ context.Context, verb KeyVerb, key []byte) ([]string, error) {
	return []string{string(rune('0' + verb)), string(key)}, s.err
}

// testServer is one server with a listener and a client.
type testServer struct {
	id       Identity
	listener *Listener
	client   *Client
	raft     raft.StreamLayer
}

// start runs a server; addresses resolves the addresses of other servers.
func start(t *testing.T, id Identity, c *Credentials, h Handler, addresses func(string) (string, bool)) *testServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conf := Config{ID: func() Identity { return id }, Credentials: c}
	s := &testServer{id: id, listener: Listen(l, "", conf), client: NewClient(conf, addresses)}
	s.raft = s.listener.Raft()
	server := s.listener.Serve(h)
	t.Cleanup(func() {
		s.client.Close()
		server.Close()
		if err := errors.Join(s.raft.Close(), s.listener.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// pair returns two servers, of which the second serves calls with h.
func pair(t *testing.T, a, b Identity, ca, cb *Credentials, h Handler) (caller, called *testServer) {
	t.Helper()
	called = start(t, b, cb, h, nil)
	caller = start(t, a, ca, &fakeHandler{}, func(id string) (string, bool) { return called.listener.Addr(), id == b.ServerID })
	return caller, called
}

var one, two = Identity{"s1", "c1"}, Identity{"s2", "c1"}

// raftEcho sends a word over a Raft connection and returns an error unless it is echoed.
func raftEcho(from, to *testServer) error {
	done := make(chan error, 1)
	go func() {
		c, err := to.raft.Accept()
		if err != nil {
			done <- err
			return
		}
		_, err = io.CopyN(c, c, 4)
		done <- errors.Join(err, c.Close())
	}()
	c, err := from.raft.Dial(raft.ServerAddress(to.listener.Addr()), 5*time.Second)
	if err != nil {
		_ = to.raft.Close()
		<-done //nolint:errcheck // Accept was interrupted by the Close above
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("word")); err != nil {
		return err
	}
	answer := make([]byte, 4)
	if _, err := io.ReadFull(c, answer); err != nil {
		return err
	}
	if string(answer) != "word" {
		return errors.New("unexpected echo " + string(answer))
	}
	return <-done
}

func TestListener_ServesRaftAndGRPCOnOnePort(t *testing.T) {
	ca := newAuthority(t)
	for name, c := range map[string]*Credentials{
		"plain":   nil,
		"address": ca.credentials(ca.issue("", bothUses...), ""),
		"name":    ca.credentials(ca.issue("server.global.cede", bothUses...), "server.global.cede"),
	} {
		t.Run(name, func(t *testing.T) {
			h := &fakeHandler{status: Status{ServerID: "s2", ClusterID: "c1", LastIndex: 5, LastTerm: 2, LastContact: -1, HasPeers: true, Servers: []string{"s1", "s2"}, Expect: 3, Build: "b"}}
			a, b := pair(t, one, two, c, c, h)
			st, err := a.client.Status(t.Context(), "s2", "")
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(*st, h.status) {
				t.Errorf("status is %+v, want %+v", *st, h.status)
			}
			if err := raftEcho(a, b); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestClient_TransmitsEveryCall(t *testing.T) {
	h := &fakeHandler{status: Status{ServerID: "s2"}}
	a, _ := pair(t, one, two, nil, nil, h)
	ctx := t.Context()
	d, err := a.client.Dequeue(ctx, "s2", 3, time.Second)
	if err != nil || string(d.Evals) != "evals" || d.Term != 7 || len(d.List) != 1 || d.List[0] != (Delivery{1<<63 + 5, uint64(time.Second), 3, "t"}) {
		t.Errorf("dequeue: %+v, %v", d, err)
	}
	want := DeliveryUpdate{Verb: Ack, EvalID: "e", Token: 5, Snapshot: 6}
	if err := a.client.UpdateDelivery(ctx, "s2", want); err != nil || len(h.updates) != 1 || h.updates[0] != want {
		t.Errorf("update: %+v, %v", h.updates, err)
	}
	if out, err := a.client.SubmitPlan(ctx, "s2", []byte("plan")); err != nil || string(out) != "plan committed" {
		t.Errorf("plan: %q, %v", out, err)
	}
	results := EvalResults{EvalID: "e", Token: 5, Evals: []byte("evals")}
	if err := a.client.WriteEvals(ctx, "s2", results); err != nil || !reflect.DeepEqual(h.results, []EvalResults{results}) {
		t.Errorf("evaluations: %+v, %v", h.results, err)
	}
	if out, err := a.client.Apply(ctx, "s2", nil); err != nil || out != (Applied{9, "conflict", "no"}) {
		t.Errorf("apply: %+v, %v", out, err)
	}
	if keys, err := a.client.Keyring(ctx, "s2", KeyUse, []byte("k")); err != nil || strings.Join(keys, " ") != "2 k" {
		t.Errorf("keyring: %v, %v", keys, err)
	}
}

func TestClient_ReturnsNotLeaderError(t *testing.T) {
	h := &fakeHandler{err: &NotLeaderError{LeaderID: "s3", Term: 12}}
	a, _ := pair(t, one, two, nil, nil, h)
	_, err := a.client.Dequeue(t.Context(), "s2", 1, time.Second)
	away, ok := errors.AsType[*NotLeaderError](err)
	if !ok || *away != (NotLeaderError{"s3", 12}) {
		t.Errorf("error is %v, want NotLeaderError with the leader", err)
	}
}

// A busy log has written nothing, which the caller must be able to rely on.
func TestClient_ReturnsNotWritten(t *testing.T) {
	h := &fakeHandler{err: fmt.Errorf("%w: the log is busy", ErrNotWritten)}
	a, _ := pair(t, one, two, nil, nil, h)
	if _, err := a.client.Dequeue(t.Context(), "s2", 1, time.Second); !errors.Is(err, ErrNotWritten) || !strings.Contains(err.Error(), "busy") {
		t.Errorf("error is %v, want ErrNotWritten", err)
	}
	h.err = errors.New("nothing was written") // only the text is the same
	if _, err := a.client.Dequeue(t.Context(), "s2", 1, time.Second); err == nil || errors.Is(err, ErrNotWritten) {
		t.Errorf("error is %v, want another", err)
	}
}

func TestClient_CancelsWaitWithContext(t *testing.T) {
	h := &fakeHandler{waiting: make(chan struct{}), gone: make(chan error, 1)}
	a, _ := pair(t, one, two, nil, nil, h)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.waiting
		cancel()
	}()
	if _, err := a.client.Dequeue(ctx, "s2", 1, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller receives %v, want context.Canceled", err)
	}
	if err := <-h.gone; !errors.Is(err, context.Canceled) {
		t.Errorf("the context of the handler ended with %v, want context.Canceled", err)
	}
}

func TestClient_ReportsWhyCallWasNotMade(t *testing.T) {
	a, b := pair(t, one, two, nil, nil, &fakeHandler{status: Status{ServerID: "other"}})
	if _, err := a.client.Status(t.Context(), "s9", ""); !errors.Is(err, ErrUnknownServer) {
		t.Errorf("unknown server: %v", err)
	}
	if _, err := a.client.Status(t.Context(), "s2", ""); !errors.Is(err, ErrUntrusted) {
		t.Errorf("another server at the address: %v", err)
	}
	if err := errors.Join(b.raft.Close(), b.listener.Close()); err != nil {
		t.Fatal(err)
	}
	a.client.Forget("s2")
	if err := a.client.WriteEvals(t.Context(), "s2", EvalResults{}); !errors.Is(err, ErrUnreachable) {
		t.Errorf("stopped server: %v", err)
	}
}

func TestListener_RefusesUntrustedCallers(t *testing.T) {
	ca, otherCA := newAuthority(t), newAuthority(t)
	valid := ca.credentials(ca.issue("", bothUses...), "")
	withCert := func(cert *tls.Certificate) *Credentials { return ca.credentials(cert, "") }
	tests := map[string]struct {
		caller      Identity
		callerCreds *Credentials
		serverCreds *Credentials
	}{
		"another cluster":                         {Identity{"s1", "c9"}, valid, valid},
		"another cluster, plain":                  {Identity{"s1", "c9"}, nil, nil},
		"no certificate":                          {one, withCert(nil), valid},
		"another authority":                       {one, withCert(otherCA.issue("", bothUses...)), valid},
		"a node's certificate":                    {one, withCert(ca.issue("", x509.ExtKeyUsageClientAuth)), valid},
		"certificate without a usage":             {one, withCert(ca.issue("")), valid},
		"certificate with any usage":              {one, withCert(ca.issue("", x509.ExtKeyUsageAny)), valid},
		"certificate of a web server":             {one, withCert(ca.issue("", x509.ExtKeyUsageServerAuth)), valid},
		"server certificate without a usage":      {one, valid, ca.credentials(ca.issue(""), "")},
		"plain to a TLS server":                   {one, nil, valid},
		"TLS to a plain server":                   {one, valid, nil},
		"caller certificate for another name":     {one, withCert(ca.issue("web.example", bothUses...)), ca.credentials(ca.issue("server.cede", bothUses...), "server.cede")},
		"server certificate without the name":     {one, ca.credentials(ca.issue("", bothUses...), "server.cede"), valid},
		"server certificate of another authority": {one, valid, otherCA.credentials(otherCA.issue("", bothUses...), "")},
		"missing server ID":                       {Identity{"", "c1"}, valid, valid},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			a, b := pair(t, tc.caller, two, tc.callerCreds, tc.serverCreds, &fakeHandler{status: Status{ServerID: "s2"}})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			if st, err := a.client.Status(ctx, "s2", ""); err == nil {
				t.Errorf("call was served: %+v", st)
			}
			if tc.caller.ServerID == "" {
				return // Raft identifies servers by itself
			}
			if err := raftEcho(a, b); err == nil {
				t.Error("Raft connection was accepted")
			}
		})
	}
}

// Connections of other programs, such as port scanners, write few lines to the log.
func TestListener_LogsRefusedConnectionsInFewLines(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s := Listen(l, "", Config{ID: func() Identity { return one }, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const connections = 300
	began := time.Now()
	for range connections {
		c, err := net.Dial("tcp", s.Addr())
		if err == nil {
			_, err = io.WriteString(c, "x")
		}
		if err == nil {
			_, err = io.ReadAll(c) // until the listener has refused it
		}
		if err = errors.Join(err, c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	most := 11 + int(time.Since(began)/(10*time.Second))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Count(log.String(), "\n")
	if lines < 10 || lines > most || s.refused.count.Load() != connections {
		t.Errorf("%d lines about %d refusals of %d connections:\n%s", lines, s.refused.count.Load(), connections, log.String())
	}
}

// A server without a cluster may be added to any.
func TestListener_AcceptsServersWithoutCluster(t *testing.T) {
	for _, ids := range [][2]Identity{{{"s1", ""}, two}, {one, {"s2", ""}}} {
		a, b := pair(t, ids[0], ids[1], nil, nil, &fakeHandler{status: Status{ServerID: "s2"}})
		if _, err := a.client.Status(t.Context(), "s2", ""); err != nil {
			t.Error(err)
		}
		if err := raftEcho(a, b); err != nil {
			t.Error(err)
		}
	}
}

// A connection that sends nothing, or invalid data, does not block others.
func TestListener_IsNotBlockedByIdleConnections(t *testing.T) {
	a, b := pair(t, one, two, nil, nil, &fakeHandler{status: Status{ServerID: "s2"}})
	var idle []net.Conn
	for _, first := range []string{"", "R", "R\x01\xff\xff", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01"} {
		c, err := net.Dial("tcp", b.listener.Addr())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
		if _, err := c.Write([]byte(first)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.client.Status(t.Context(), "s2", ""); err != nil {
		t.Error(err)
	}
	if err := raftEcho(a, b); err != nil {
		t.Error(err)
	}
	for _, c := range idle {
		_ = c.Close()
	}
}

// Calls use the current address of a server.
func TestClient_ReconnectsWhenAddressChanges(t *testing.T) {
	h := &fakeHandler{status: Status{ServerID: "s2"}}
	first, second := start(t, two, nil, h, nil), start(t, two, nil, h, nil)
	at := first.listener.Addr()
	a := start(t, one, nil, h, func(string) (string, bool) { return at, true })
	if _, err := a.client.Status(t.Context(), "s2", ""); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(first.raft.Close(), first.listener.Close()); err != nil {
		t.Fatal(err)
	}
	at = second.listener.Addr()
	if _, err := a.client.Status(t.Context(), "s2", ""); err != nil {
		t.Error(err)
	}
}

// Raft does not close the connections that it accepted, so its listener does.
func TestListener_ClosesAcceptedRaftConnections(t *testing.T) {
	a, b := pair(t, one, two, nil, nil, &fakeHandler{})
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := b.raft.Accept()
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	c, err := a.raft.Dial(raft.ServerAddress(b.listener.Addr()), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	inbound := <-accepted
	if err := b.raft.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := inbound.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read returns %v, want net.ErrClosed", err)
	}
}
