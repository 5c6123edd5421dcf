package agent

import (
	"fmt"
	"maps"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/app"
	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/config"
	"github.com/cede-scheduler/cede/sdk/client"
)

// envConfig is the variable that lists configuration files, as -c does.
const envConfig = "CEDE_CONFIG"

// NewCommand returns `cede agent`.
func NewCommand(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run a server, a node, or both in one process",
		Long: `Run a server, a node agent, an agent of a member cluster, or several of them in one
process, as the configuration requires.

With --dev it runs a server and a node on loopback, for evaluation: the data
directory is temporary, every built-in policy is loaded, and preemption is enabled for
all types of jobs.

SIGHUP, or POST /v1/agent/reload, reads the configuration again. The log level,
certificates, rates, workers and policies are applied; if any other key differs, the
reload is refused and nothing changes. If server.workers is 0, the server processes no
evaluations; without the key it processes half as many at a time as it has processors.

SIGINT and SIGTERM stop the process in order, and a second signal ends it at once.
Stopping a server transfers leadership but does not remove it from the cluster; cede
server leave does.`,
		Example: `  cede agent --dev
  cede agent -c /etc/cede/cede.yaml
  cede agent --dev --set listen.http=127.0.0.1:5000 --set listen.metrics=`,
		Args: cmdutil.PositionalArgs(0, 0, "no arguments"),
	}
	from := SourceFlags(cmd, env)
	from.devFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := from.Load(true)
		if err != nil {
			return err
		}
		reload := make(chan os.Signal, 1)
		signal.Notify(reload, syscall.SIGHUP)
		defer signal.Stop(reload)
		env.HandlesInterrupt.Store(true)
		app.TuneForService()
		if c.Server.Enabled {
			defer app.KeepHeadroom(env.Memory())()
		}
		return app.Run(cmd.Context(), app.Options{
			Config: c, Build: env.Build, Stderr: env.Stderr, Terminal: env.StderrTerminal, Getenv: env.Getenv,
		}, reload, func(p *app.Process) { printBanner(env, c, p.URL()) })
	}
	return cmd
}

// printBanner prints the next steps for a new user.
func printBanner(env *cmdutil.Env, c *config.Loaded, url string) {
	if !c.Dev {
		return // the log reports the addresses
	}
	address := ""
	if url != client.DefaultAddress {
		address = "  export CEDE_ADDR=" + url + "\n"
	}
	_, _ = fmt.Fprintf(env.Stdout, `cede is ready at %s
A server and a node, on this machine alone; all of it goes when this ends (Ctrl-C).

Try, in another terminal:
%s  cede job init && cede job run job.hcl
  cede alloc list
  cede policy list
`, url, address)
}

// Sources are the flags that select the sources of the configuration.
type Sources struct {
	Files []string
	// Flags holds keys that other flags of the command set.
	Flags map[string]string
	// Kubernetes selects the configuration of cede kubernetes.
	Kubernetes bool

	env *cmdutil.Env
	set []string
	dev bool
}

// SourceFlags adds the flags to a command.
func SourceFlags(cmd *cobra.Command, env *cmdutil.Env) *Sources {
	s := &Sources{env: env, Flags: map[string]string{}}
	f := cmd.Flags()
	f.StringArrayVarP(&s.Files, "config", "c", nil, "read the YAML file or folder `FILE`; may be repeated, later files override earlier ones (default $"+envConfig+")")
	f.StringArrayVar(&s.set, "set", nil, "set a configuration `KEY=VALUE`, such as log.level=debug; may be repeated")
	return s
}

// devFlag adds --dev.
func (s *Sources) devFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&s.dev, "dev", false, "run a temporary server and node for evaluation")
}

// Load reads the configuration and returns all of its problems together. If look is
// set, they include those of the files that it names.
func (s *Sources) Load(look bool) (*config.Loaded, error) {
	src := config.Sources{Look: look, NoSecrets: !look, Files: s.Files, Environ: s.env.Environ(), Flags: maps.Clone(s.Flags), Dev: s.dev, Kubernetes: s.Kubernetes}
	if len(src.Files) == 0 {
		for name := range strings.SplitSeq(s.env.Getenv(envConfig), string(os.PathListSeparator)) {
			if name != "" {
				src.Files = append(src.Files, name)
			}
		}
	}
	for _, text := range s.set {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, cmdutil.Usagef("use --set KEY=VALUE, such as --set log.level=debug", "invalid --set %q: expected KEY=VALUE", text)
		}
		src.Flags[key] = value
	}
	c, err := config.Load(src)
	if err != nil {
		return nil, invalidConfig(err)
	}
	return c, nil
}
