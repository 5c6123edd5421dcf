package rpc

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/hashicorp/raft"
)

// Raft is the listener's other half, and how Raft calls other servers. Whoever
// closes a transport over it closes this half alone.
func (t *Listener) Raft() raft.StreamLayer { return &streams{half: t.raft} }

type streams struct{ *half }

var _ raft.StreamLayer = (*streams)(nil)

// Dial calls the server at an address, and tells it who calls. Once the half is closed
// nobody is called any more.
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	select {
	case <-s.stop:
		return nil, net.ErrClosed
	default:
	}
	if timeout <= 0 {
		timeout = firstWithin
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.of.cfg.dial(ctx, string(to), protoRaft)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(timeout))
	if err := s.of.cfg.introduce(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("server at %s: %w", to, err)
	}
	return c, c.SetDeadline(time.Time{})
}

// dial opens a connection of a protocol.
func (c *Config) dial(ctx context.Context, to, proto string) (net.Conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", to)
	if err != nil || c.Credentials == nil {
		return raw, err
	}
	secure := tls.Client(raw, c.Credentials.calling(hostOf(to), proto))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, handshakeError(err)
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != proto {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: the server at %s speaks %q, not %s", ErrStranger, to, got, proto)
	}
	return secure, nil
}

// A connection of Raft begins with a hello: helloVersion, the cluster and the
// server, each after its length; the answer is answerWelcome, or answerRefused and
// a reason after its length.
const (
	helloVersion  = 1
	answerWelcome = 1
	answerRefused = 2
	longestText   = 1024
)

// introduce says who calls, and reads whether that is welcome.
func (c *Config) introduce(conn net.Conn) error {
	me := c.ID()
	var hello []byte
	if c.Credentials == nil {
		hello = append(hello, firstRaft)
	}
	hello = appendText(appendText(append(hello, helloVersion), me.ClusterID), me.ServerID)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	var answer [1]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return fmt.Errorf("it gives no answer: %w", err)
	}
	if answer[0] == answerWelcome {
		return nil
	}
	why, err := readText(conn)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrStranger, why)
}

// hear reads who calls, and answers.
func (t *Listener) hear(conn net.Conn) error {
	// Raft reads from the connection itself, so nothing more may be taken from it.
	var version [1]byte
	if _, err := io.ReadFull(conn, version[:]); err != nil {
		return err
	}
	cluster, err := readText(conn)
	if err != nil {
		return err
	}
	server, err := readText(conn)
	if err != nil {
		return err
	}
	refusal := ""
	if version[0] != helloVersion {
		refusal = fmt.Sprintf("it greets in version %d, and this server in %d: upgrade the older one", version[0], helloVersion)
	} else if err := t.cfg.knows(Identity{ServerID: server, ClusterID: cluster}); err != nil {
		refusal = err.Error()
	}
	if refusal == "" {
		_, err = conn.Write([]byte{answerWelcome})
		return err
	}
	_, err = conn.Write(appendText([]byte{answerRefused}, refusal))
	return errors.Join(fmt.Errorf("%w: server %q: %s", ErrStranger, server, refusal), err)
}

// knows is whether a caller may belong to this server's cluster.
func (c *Config) knows(caller Identity) error {
	if me := c.ID(); me.ClusterID != "" && caller.ClusterID != "" && me.ClusterID != caller.ClusterID {
		return fmt.Errorf("it belongs to cluster %s, and this server to %s", caller.ClusterID, me.ClusterID)
	}
	return nil
}

func appendText(to []byte, text string) []byte {
	text = text[:min(len(text), longestText)]
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}

func readText(r io.Reader) (string, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > longestText {
		return "", fmt.Errorf("%w: a text of %d bytes", ErrStranger, n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}
