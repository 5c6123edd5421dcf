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

// Main runs the command line of env and returns the exit code. The first
// interrupt asks the command to stop; it ends the process itself should the
// command not notice (it may be waiting for standard input), and a second one
// ends it at once.
func Main(env *Env) Exit {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	defer context.AfterFunc(ctx, func() {
		stop()
		env.Clock.AfterFunc(grace, func() { env.Exit(int(ExitInterrupted)) })
	})()
	defer func() { _ = env.Close() }() // the command is over; what it said stands
	return run(ctx, env)
}

func run(ctx context.Context, env *Env) Exit {
	env.jsonErrors = wantsJSON(env.Args, env.Getenv)
	err := newRootCmd(env).ExecuteContext(ctx)
	if err != nil {
		env.report(err)
	}
	return exitOf(err)
}
