package cmdutil

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

const (
	// interruptGrace is the time that an interrupted command has to return.
	interruptGrace = time.Second
	// closeTimeout limits the wait for policies to end.
	closeTimeout = 3 * time.Second
)

// Main runs the command line of env on the command tree that newRoot returns, and
// returns the exit code. The first interrupt cancels the command's context. If the
// command has not returned after interruptGrace (it may be blocked on standard
// input), Main ends the process. A second interrupt ends the process at once.
func Main(env *Env, newRoot func(*Env) *cobra.Command) Exit {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop()
		if env.HandlesInterrupt.Load() {
			return
		}
		env.Clock.AfterFunc(interruptGrace, func() {
			env.Report(ctx.Err())
			env.closePolicies()
			env.Exit(int(ExitInterrupted))
		})
	})()
	defer env.closePolicies()
	return Run(ctx, env, newRoot)
}

// Run runs the command line of env, reports its error on stderr, and returns the
// exit code. It handles no signals.
func Run(ctx context.Context, env *Env, newRoot func(*Env) *cobra.Command) Exit {
	env.JSONErrors = WantsJSON(env.Args, env.Getenv)
	err := newRoot(env).ExecuteContext(ctx)
	env.Report(err)
	return ExitOf(err)
}

// closePolicies ends the processes and temporary files of policies. The command
// is over and its result is printed, so an error is ignored, and a policy that
// does not end within closeTimeout is abandoned.
func (env *Env) closePolicies() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = env.Close()
	}()
	late := make(chan struct{})
	timer := env.Clock.AfterFunc(closeTimeout, func() { close(late) })
	defer timer.Stop()
	select {
	case <-done:
	case <-late:
	}
}
