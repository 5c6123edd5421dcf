package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	goplugin "github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/plugins/internal/guestlog"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// process is one process and the connection to it.
type process struct {
	host   *Host
	file   string // executed file
	dir    string
	runner runner
	client *plugin.Client
	policy policypb.PolicyClient
	conns  conns

	started       chan struct{} // closed when start has returned
	once          sync.Once
	startTimedOut atomic.Bool // killed because it was not ready in time
}

// program describes how to start a process.
type program struct {
	file      string
	args, env []string
	memory    int64
	log       *guestlog.Log
}

// start starts a process and connects to it.
func (h *Host) start(ctx context.Context, what *program) (*process, *policy.Error) {
	p := &process{host: h, file: what.file, dir: h.newProcessDir(), started: make(chan struct{})}
	p.runner.init()
	p.runner.memory, p.runner.socket, p.runner.output.log = what.memory, p.dir, what.log
	if h.isolation != "" {
		p.runner.sandbox = func(key uint32) error { return enterSandbox(p.file, p.dir, key) }
	}
	if err := h.register(p); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, p.runner.kill)
	err := p.start(what)
	if !stop() {
		err = fault(policy.FaultHost, "", "start was canceled: %w", ctx.Err())
	}
	close(p.started)
	if err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *process) start(what *program) *policy.Error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return &policy.Error{Fault: policy.FaultHost, Err: err}
	}
	timeout := p.host.options.StartTimeout
	watch := time.AfterFunc(timeout, func() {
		p.startTimedOut.Store(true)
		p.runner.kill()
	})
	defer watch.Stop()
	config := p.config(what)
	p.client = plugin.NewClient(config)
	if _, err := p.client.Start(); err != nil {
		return p.startError(err)
	}
	go p.watch()
	// After a second without traffic TLS would use small records again. They help
	// interactive clients; a frame is only useful as a whole.
	config.TLSConfig.DynamicRecordSizingDisabled = true
	protocol, err := p.client.Client()
	if err != nil {
		return p.startError(err)
	}
	raw, err := protocol.Dispense(policypb.Name)
	if err != nil {
		return p.startError(err)
	}
	if !p.runner.isAlive() { // go-plugin returns no error if the connection just broke
		return p.startError(errBroken)
	}
	p.policy = raw.(policypb.PolicyClient)
	return nil
}

// watch cleans up when the process ends for any reason.
func (p *process) watch() {
	<-p.runner.exited
	<-p.started
	p.close()
}

// config returns the go-plugin configuration that starts the process.
func (p *process) config(what *program) *plugin.ClientConfig {
	run := func(_ hclog.Logger, asked *exec.Cmd, _ string) (goplugin.Runner, error) {
		env := slices.Concat(what.env, p.environment(asked.Env), []string{"GOMEMLIMIT=" + strconv.FormatInt(what.memory, 10)})
		p.runner.command = func() *exec.Cmd {
			cmd := exec.Command(what.file, what.args...)
			cmd.Env, cmd.Dir = slices.Clone(env), p.dir
			return cmd
		}
		return &p.runner, nil
	}
	return &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: policypb.CookieKey, MagicCookieValue: policypb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{policypb.Protocol: {policypb.Name: grpcPolicy{}}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		RunnerFunc:       run,
		AutoMTLS:         true,
		SkipHostEnv:      true,
		StartTimeout:     2 * p.host.options.StartTimeout, // our own timeout comes first and has a better error
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: p.dir},
		Logger:           hclog.NewNullLogger(),
		SyncStdout:       &lineWriter{maxLen: maxLine, emit: p.runner.output.handlePlain},
		SyncStderr:       &lineWriter{maxLen: maxLine, emit: p.runner.output.handlePlain},
		GRPCDialOptions:  p.conns.options(),
	}
}

// environment returns go-plugin's variables with a shorter path for the socket directory.
func (p *process) environment(asked []string) []string {
	env := slices.DeleteFunc(slices.Clone(asked), func(s string) bool { return strings.HasPrefix(s, plugin.EnvUnixSocketDir+"=") })
	return append(env, plugin.EnvUnixSocketDir+"="+p.dir)
}

// close kills the process and removes everything that belongs to it. It returns after the
// cleanup, and may be called again and concurrently.
func (p *process) close() {
	p.once.Do(func() {
		p.runner.kill()
		<-p.started
		p.runner.wait()
		if p.client != nil {
			p.client.Kill() // already dead: this ends go-plugin's goroutines
		}
		p.conns.close()
		_ = os.RemoveAll(p.dir)
		p.host.unregister(p)
	})
}

// conns records the connections that go-plugin opens. If its start fails half-way, it does
// not close them.
type conns struct {
	mu   sync.Mutex
	list []*grpc.ClientConn
}

func (c *conns) options() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
			next grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			c.add(cc)
			return next(ctx, desc, cc, method, opts...)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(policypb.MaxMessage), grpc.MaxCallSendMsgSize(policypb.MaxMessage)),
		grpc.WithInitialWindowSize(policypb.Window), grpc.WithInitialConnWindowSize(policypb.Window),
	}
}

func (c *conns) add(cc *grpc.ClientConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Contains(c.list, cc) {
		c.list = append(c.list, cc)
	}
}

func (c *conns) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cc := range c.list {
		_ = cc.Close() // closed before if nothing failed
	}
}

// grpcPolicy adapts the policy service to go-plugin.
type grpcPolicy struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = grpcPolicy{}

// GRPCServer returns an error: the guest's half is not part of the host.
func (grpcPolicy) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host does not serve policies")
}

// GRPCClient returns the client of the policy service.
func (grpcPolicy) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, cc *grpc.ClientConn) (any, error) {
	return policypb.NewPolicyClient(cc), nil
}
