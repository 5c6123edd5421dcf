//go:build unix

package process

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cede-scheduler/cede/sdk/abi"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
	"github.com/cede-scheduler/cede/sdk/serve/policypb"
)

// The test binary is also the guest of the tests: started with modeEnv, it behaves as the
// mode says. Guests that use sdk/serve are in testdata.
const modeEnv = "CEDE_TEST_GUEST"

// beforeHandshake are the modes of processes that never become a policy.
var beforeHandshake = map[string]func(){
	"exits":   func() { die("the licence has expired") },
	"rubbish": func() { fmt.Println("Starting up, please wait..."); forever() },
	"rubbish and exit": func() {
		fmt.Println("\x1b[31mhello|world")
		die("that was all")
	},
	"silent": forever,
	"endless line": func() {
		for {
			fmt.Print(strings.Repeat("x", 1<<16))
		}
	},
	"elsewhere":  func() { handshake("1|1|unix|/run/docker.sock|grpc|"); forever() },
	"by network": func() { handshake("1|1|tcp|127.0.0.1:1|grpc|"); forever() },
	"no such core protocol": func() {
		handshake("2|1|unix|x|grpc|")
		forever()
	},
	"handshake and exit": func() { handshake(socketLine()); die("changed my mind") },
	"no listener":        func() { handshake(socketLine()); forever() },
	"old transport":      func() { handshake(strings.ReplaceAll(socketLine(), "grpc", "netrpc")); forever() },
	"future protocol":    func() { serveMode("honest", 9) },
}

// socketLine returns a valid handshake without a server behind it.
func socketLine() string {
	at := filepath.Join(os.Getenv(plugin.EnvUnixSocketDir), "plugin1")
	l, err := net.Listen("unix", at)
	if err != nil {
		die(err.Error())
	}
	_ = l
	return "1|1|unix|" + at + "|grpc|"
}

func handshake(line string) { fmt.Println(line) }

func forever() { time.Sleep(time.Hour) }

func die(text string) {
	fmt.Fprintln(os.Stderr, text)
	os.Exit(3)
}

// runMode never returns.
func runMode(mode string) {
	if run, ok := beforeHandshake[mode]; ok {
		run()
		os.Exit(0)
	}
	serveMode(mode, policypb.Protocol)
	os.Exit(0)
}

func serveMode(mode string, protocol int) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: policypb.CookieKey, MagicCookieValue: policypb.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol: {policypb.Name: &rawPlugin{mode: mode}}},
		GRPCServer: func(o []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(o, grpc.MaxRecvMsgSize(policypb.MaxMessage))...)
		},
		Logger: hclog.NewNullLogger(),
	})
}

type rawPlugin struct {
	grpcPolicy
	mode string
}

func (p *rawPlugin) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	policypb.RegisterPolicyServer(s, &rawGuest{mode: p.mode, stderr: os.Stderr})
	return nil
}

// rawGuest implements the process protocol without sdk/serve. It returns a valid
// description, and valid or invalid answers.
type rawGuest struct {
	policypb.UnimplementedPolicyServer
	mode    string
	stderr  *os.File // original standard error
	decoder abi.Decoder
	calls   int
}

func (g *rawGuest) Call(ctx context.Context, r *policypb.Request) (*policypb.Answer, error) {
	frame := abi.Grow(nil, len(r.GetFrame()))
	copy(frame, r.GetFrame())
	if _, err := g.decoder.Load(frame); err != nil {
		return nil, err
	}
	answer := &policypb.Answer{Frame: frame, Version: abi.Version}
	if abi.Op(r.GetOp()) == abi.OpDescribe {
		return g.describe(answer)
	}
	if act, ok := whenAsked[g.mode]; ok {
		g.calls++
		return act(ctx, g, answer)
	}
	return g.honest(answer)
}

func (g *rawGuest) describe(answer *policypb.Answer) (*policypb.Answer, error) {
	d := &abi.Description{Info: rules.New().Info(), Hooks: abi.HookSelectVictims}
	switch g.mode {
	case "future ABI":
		answer.Version = abi.Version + 1
	case "other ABI":
		answer.Version = 2 << 16
	case "ancient ABI":
		answer.Version = 0
	case "no hooks":
		d.Hooks = 0
	case "strange hooks":
		d.Hooks = 1 << 9
	case "strange name":
		d.Info.Name = "\x1b[31mred"
	case "strange settings":
		d.Configurable, d.Settings = true, []byte(`[{"name":"x","kind":"quantum"}]`)
	case "dies when described":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
	case "hangs when described":
		forever()
	}
	return answer, g.decoder.PutDescription(d)
}

// honest answers SelectVictims by the default rules.
func (g *rawGuest) honest(answer *policypb.Answer) (*policypb.Answer, error) {
	in, err := g.decoder.Candidates()
	if err != nil {
		return nil, err
	}
	var s policy.Selection
	s.Reset()
	if err := rules.New().SelectVictims(in, &s); err != nil {
		return nil, err
	}
	return answer, g.decoder.PutSelection(&s)
}

// whenAsked are the modes of policies that fail when a hook is called.
var whenAsked = map[string]func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error){
	"kills itself": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		forever()
		return nil, nil
	},
	"exits in a call": func(_ context.Context, g *rawGuest, _ *policypb.Answer) (*policypb.Answer, error) {
		_, _ = fmt.Fprintln(g.stderr, "cannot reach the oracle")
		os.Exit(7)
		return nil, nil
	},
	"panics": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		panic("no such row: 17")
	},
	"hangs": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		forever()
		return nil, nil
	},
	"spins": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	},
	"stops": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		forever()
		return nil, nil
	},
	"every third call": func(_ context.Context, g *rawGuest, answer *policypb.Answer) (*policypb.Answer, error) {
		if g.calls%3 == 0 {
			panic("the third")
		}
		return g.honest(answer)
	},
	"longer": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.Frame = append(a.Frame, 0)
		return a, nil
	},
	"shorter": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.Frame = a.Frame[:len(a.Frame)/2]
		return a, nil
	},
	"no frame": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		return &policypb.Answer{Version: abi.Version}, nil
	},
	"from nowhere": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.From, a.Frame = 1<<31, nil
		return a, nil
	},
	"strange entries": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.Entries = []byte("entries")
		return a, nil
	},
	"much larger": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.Frame = make([]byte, 32<<20)
		return a, nil
	},
	"garbage": func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		for i := range a.Frame {
			a.Frame[i] = 0xff
		}
		return a, nil
	},
	"too many picks": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		in, err := g.decoder.Candidates()
		if err != nil {
			return nil, err
		}
		var s policy.Selection
		s.Reset()
		for range in.Len() {
			for range in.Rows.Len() + 1 {
				s.Pick(0)
			}
			s.Next()
		}
		return a, g.decoder.PutSelection(&s)
	},
	"no status":   withStatus(7),
	"bad frame":   withStatus(abi.BadFrame),
	"unsupported": withStatus(abi.UnsupportedOp),
	"no memory":   withStatus(abi.OutOfMemory),
	"objects": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		g.decoder.PutError("today is \x07Sunday")
		a.Status = int32(abi.PolicyError)
		return a, nil
	},
	"error of gRPC": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		return nil, status.Error(codes.PermissionDenied, "not you")
	},
	"claims to be unavailable": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		return nil, status.Error(codes.Unavailable, "come back later")
	},
	"claims a deadline": func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
		return nil, status.Error(codes.DeadlineExceeded, "too late")
	},
	"has a child": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		cmd := exec.Command("/bin/sleep", "1000")
		cmd.Stdout, cmd.Stderr = g.stderr, g.stderr // the child keeps our output open
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		_, _ = fmt.Fprintf(g.stderr, "child %d\n", cmd.Process.Pid)
		return g.honest(a)
	},
	"logs": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		for _, line := range []string{
			`{"@level":"warn","@message":"careful","@timestamp":"2026-01-02T15:04:05.000000Z","rows":3}`,
			`{"@message":1}`, `{"@level":{},"@message":"no level"}`, `{"@timestamp":[],"@message":"no time"}`, `{`, `[]`, `null`,
			"plain \x1b[31mred", strings.Repeat("long ", 20_000),
		} {
			_, _ = fmt.Fprintln(g.stderr, line)
		}
		fmt.Println("printed by the policy") // go-plugin forwards it over the connection
		return g.honest(a)
	},
	"tells its environment": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		g.decoder.PutError(strings.Join(append(os.Args[1:], withoutCertificate(os.Environ())...), " "))
		a.Status = int32(abi.PolicyError)
		return a, nil
	},
	"allocates": func(_ context.Context, g *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		var kept [][]byte
		for range 4096 {
			block := make([]byte, 1<<20)
			for i := 0; i < len(block); i += 4096 {
				block[i] = 1
			}
			kept = append(kept, block)
		}
		runtime.KeepAlive(kept)
		return g.honest(a)
	},
}

func withStatus(s abi.Status) func(context.Context, *rawGuest, *policypb.Answer) (*policypb.Answer, error) {
	return func(_ context.Context, _ *rawGuest, a *policypb.Answer) (*policypb.Answer, error) {
		a.Status = int32(s)
		return a, nil
	}
}

// withoutCertificate returns the names in an environment, with values that are equal in
// every run.
func withoutCertificate(env []string) []string {
	var list []string
	for _, s := range env {
		name, _, _ := strings.Cut(s, "=")
		list = append(list, name)
	}
	return list
}
