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

// logger writes to the process's standard error, which the host reads. go-plugin
// replaces it later.
var logger = hclog.New(&hclog.LoggerOptions{Output: os.Stderr, JSONFormat: true, Level: hclog.Trace})

// Serve processes calls until the host ends this process. If the program is started
// by hand, it reports that it is a plugin and exits.
func Serve() {
	if !abi.LittleEndian() {
		logger.Error("this machine is big-endian; frames require little-endian byte order")
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

// endWithHost ends the process when its standard input is closed. The host holds the
// other end and never writes to it. If the kernel does not end a process with its
// parent, this prevents orphans.
func endWithHost(stdin io.Reader) {
	_, _ = io.Copy(io.Discard, stdin)
	os.Exit(0)
}

func newServer(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append(options,
		grpc.MaxRecvMsgSize(policypb.MaxMessage), grpc.MaxSendMsgSize(policypb.MaxMessage),
		grpc.InitialWindowSize(policypb.Window), grpc.InitialConnWindowSize(policypb.Window))...)
}

// servedPolicy adapts the policy to go-plugin.
type servedPolicy struct {
	plugin.NetRPCUnsupportedPlugin
	server *policyServer
}

var _ plugin.GRPCPlugin = (*servedPolicy)(nil)

func (p *servedPolicy) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	policypb.RegisterPolicyServer(s, p.server)
	return nil
}

// GRPCClient returns an error: the host's half is not part of this program.
func (p *servedPolicy) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, plugin.ErrProcessNotFound
}

// policyServer processes frames one at a time.
type policyServer struct {
	policypb.UnimplementedPolicyServer

	mu    sync.Mutex
	guest *guest
}

// Call processes a frame in place. If the policy panics, the process ends; the host
// reads the panic from standard error and starts another process.
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

// alignedFrame returns the frame itself if its columns can be read in place, or else
// a copy. Go aligns blocks of this size, but gRPC does not guarantee it.
func alignedFrame(frame []byte) []byte {
	if uintptr(unsafe.Pointer(unsafe.SliceData(frame)))%abi.Alignment == 0 {
		return frame
	}
	fresh := abi.Grow(nil, len(frame))
	copy(fresh, frame)
	return fresh
}

// Log writes a line to the host's log. Use it for debugging; decisions must not
// depend on it. The host truncates long lines and drops lines beyond its rate limit.
func Log(level int32, text string) {
	levels := [...]hclog.Level{abi.LevelDebug: hclog.Debug, abi.LevelInfo: hclog.Info, abi.LevelWarn: hclog.Warn, abi.LevelError: hclog.Error}
	if level < 0 || int(level) >= len(levels) {
		level = abi.LevelDebug
	}
	logger.Log(levels[level], text)
}
