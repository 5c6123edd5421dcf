//go:build !wasip1 && process

package serve

import (
	"context"
	"io"
	"os"
	"sync"
	"unsafe"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// logger writes to the process's own standard error, which the host reads;
// go-plugin puts another in its place later.
var logger = hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Trace})

// Serve answers the host until it has had enough of this process. Started by
// hand, the program says that it is a plugin and ends.
func Serve() {
	if !abi.LittleEndian() {
		logger.Error("frames are little-endian, and this machine is not")
		os.Exit(1)
	}
	g := newGuest()
	if os.Getenv(policypb.CookieKey) == policypb.CookieValue {
		go endWithHost(os.Stdin)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: policypb.CookieKey, MagicCookieValue: policypb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{policypb.Protocol: {policypb.Name: &servedPolicy{server: &policyServer{guest: g}}}},
		GRPCServer:       newServer,
		Logger:           hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Warn}),
	})
}

// endWithHost ends the process when its standard input does: the host holds the
// other end and never writes to it. Where the kernel does not end a process
// with its parent this is what prevents orphans.
func endWithHost(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(0)
}

func newServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(policypb.MaxMessage), grpc.MaxSendMsgSize(policypb.MaxMessage),
		grpc.InitialWindowSize(policypb.Window), grpc.InitialConnWindowSize(policypb.Window))...)
}

// servedPolicy is the policy as go-plugin knows it.
type servedPolicy struct {
	plugin.NetRPCUnsupportedPlugin
	server *policyServer
}

var _ plugin.GRPCPlugin = (*servedPolicy)(nil)

func (p *servedPolicy) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	policypb.RegisterPolicyServer(s, p.server)
	return nil
}

// GRPCClient is the host's half, which is not here.
func (p *servedPolicy) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, plugin.ErrProcessNotFound
}

// policyServer answers frames, one at a time.
type policyServer struct {
	policypb.UnimplementedPolicyServer

	mu    sync.Mutex
	guest *guest
}

// Call answers a frame in place. A panic of the policy ends the process, as
// anywhere in Go: the host reads from standard error what it was, and starts
// another.
func (s *policyServer) Call(_ context.Context, r *policypb.Request) (*policypb.Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	frame := alignedFrame(r.GetFrame())
	answer := &policypb.Answer{Version: abi.Version, Frame: frame}
	status := s.guest.call(abi.Op(r.GetOp()), frame)
	answer.Status = int32(status)
	if status != abi.BadFrame {
		entries, from := s.guest.decoder.Tail()
		answer.Entries, answer.Frame, answer.From = entries, frame[from:], uint32(from)
	}
	return answer, nil
}

// alignedFrame is the frame where it lies if columns can be read there, else a copy.
// Go lays blocks of this size so that they can; no promise of gRPC's says so.
func alignedFrame(frame []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(frame)))%abi.Alignment == 0 {
		return frame
	}
	fresh := abi.Grow(nil, len(frame))
	copy(fresh, frame)
	return fresh
}

// Log writes a line to the host's log: for debugging, never for decisions. The
// host cuts long lines and drops many.
func Log(level int32, text string) {
	levels := [...]hclog.Level{abi.LevelDebug: hclog.Debug, abi.LevelInfo: hclog.Info, abi.LevelWarn: hclog.Warn, abi.LevelError: hclog.Error}
	if level < 0 || int(level) >= len(levels) {
		level = abi.LevelDebug
	}
	logger.Log(levels[level], text)
}
