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

// Raft returns the Raft listener, through which Raft also calls other servers. Closing a
// transport over it closes only the Raft listener.
func (t *Listener) Raft() raft.StreamLayer { return &streams{protocolListener: t.raft} }

type streams struct{ *protocolListener }

var _ raft.StreamLayer = (*streams)(nil)

// Dial connects to the server at an address and identifies this server. It fails once the
// listener is closed.
func (s *streams) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	select {
	case <-s.stop:
		return nil, net.ErrClosed
	default:
	}
	if timeout <= 0 {
		timeout = handshakeTimeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	c, err := s.of.cfg.dial(ctx, string(to), protoRaft)
	if err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(timeout))
	if err := s.of.cfg.sendHello(c); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("server at %s: %w", to, err)
	}
	return c, c.SetDeadline(time.Time{})
}

// dial opens a connection for a protocol.
func (c *Config) dial(ctx context.Context, to, proto string) (net.Conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", to)
	if err != nil || c.Credentials == nil {
		return raw, err
	}
	secure := tls.Client(raw, c.Credentials.clientConfig(hostOf(to), proto))
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, handshakeError(err)
	}
	if got := secure.ConnectionState().NegotiatedProtocol; got != proto {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: the server at %s negotiated protocol %q instead of %s", ErrUntrusted, to, got, proto)
	}
	return secure, nil
}

// A Raft connection starts with a hello: helloVersion, the cluster and the server, each
// prefixed with its length. The response is helloAccepted, or helloRefused and a reason
// prefixed with its length.
const (
	helloVersion  = 1
	helloAccepted = 1
	helloRefused  = 2
	maxText       = 1024
)

// sendHello sends the identity of this server and reads the response.
func (c *Config) sendHello(conn net.Conn) error {
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
		return fmt.Errorf("no response to hello: %w", err)
	}
	if answer[0] == helloAccepted {
		return nil
	}
	why, err := readText(conn)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrUntrusted, why)
}

// readHello reads the identity of the caller and responds.
func (t *Listener) readHello(conn net.Conn) error {
	// Raft reads from conn itself, so reads must not be buffered here.
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
		refusal = fmt.Sprintf("hello has version %d, but this server expects %d: upgrade the older server", version[0], helloVersion)
	} else if err := t.cfg.checkCluster(Identity{ServerID: server, ClusterID: cluster}); err != nil {
		refusal = err.Error()
	}
	if refusal == "" {
		_, err = conn.Write([]byte{helloAccepted})
		return err
	}
	_, err = conn.Write(appendText([]byte{helloRefused}, refusal))
	return errors.Join(fmt.Errorf("%w: server %q: %s", ErrUntrusted, server, refusal), err)
}

// checkCluster returns an error if the caller belongs to another cluster.
func (c *Config) checkCluster(caller Identity) error {
	if me := c.ID(); me.ClusterID != "" && caller.ClusterID != "" && me.ClusterID != caller.ClusterID {
		return fmt.Errorf("caller belongs to cluster %s, this server belongs to cluster %s", caller.ClusterID, me.ClusterID)
	}
	return nil
}

func appendText(to []byte, text string) []byte {
	text = text[:min(len(text), maxText)]
	return append(binary.BigEndian.AppendUint16(to, uint16(len(text))), text...)
}

func readText(r io.Reader) (string, error) {
	var length [2]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return "", err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > maxText {
		return "", fmt.Errorf("%w: hello with a text of %d bytes", ErrUntrusted, n)
	}
	text := make([]byte, n)
	_, err := io.ReadFull(r, text)
	return string(text), err
}
