package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// grace is how long a command may take to stop once it is interrupted.
const grace = time.Second

// leaving is how long ending policies may take.
const leaving = 3 * time.Second

// Main runs the command line of env and returns the exit code. The first
// interrupt asks the command to stop; it ends the process itself should the
// command not notice (it may be waiting for standard input), and a second one
// ends it at once.
func Main(env *Env) Exit {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop()
		if env.endsItself.Load() {
			return
		}
		env.Clock.AfterFunc(grace, func() {
			env.report(ctx.Err())
			env.leave()
			env.Exit(int(ExitInterrupted))
		})
	})()
	defer env.leave()
	return run(ctx, env)
}

// leave ends what policies were run with: processes, and what they left on disk.
// The command is over and what it said stands, so an error is nobody's concern;
// and a policy that does not end in time is not waited for.
func (env *Env) leave() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = env.Close()
	}()
	late := make(chan struct{})
	timer := env.Clock.AfterFunc(leaving, func() { close(late) })
	defer timer.Stop()
	select {
	case <-done:
	case <-late:
	}
}

func run(ctx context.Context, env *Env) Exit {
	env.jsonErrors = wantsJSON(env.Args, env.Getenv)
	err := newRootCmd(env).ExecuteContext(ctx)
	if err != nil {
		env.report(err)
	}
	return exitOf(err)
}
