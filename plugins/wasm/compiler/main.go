package compiler

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/cede-scheduler/cede/core/confine"
)

// Arg is the only argument with which a program is started to compile.
const Arg = "compile-policy"

// init turns a process that a Compiler started into one that compiles. A call in the main
// function of each program could be forgotten: the program would start itself without end, and
// a program that embeds a host, such as another kube-scheduler, has a main function of its own.
func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(run())
	}
}

// run compiles the module on the standard input and returns the exit code of the process.
func run() int {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// serve compiles a module within the budget of its request, and reports the result.
func serve(in io.Reader, out io.Writer) error {
	input := bufio.NewReader(in)
	head, err := input.ReadBytes('\n')
	if err != nil {
		return err
	}
	var r Request
	if err := json.Unmarshal(head, &r); err != nil {
		return err
	}
	if err := confine.Apply(confine.Limits{Memory: r.Budget.Memory, CPU: r.Budget.CPU, File: r.Budget.Output, Nice: 10}); err != nil {
		return err
	}
	module, err := io.ReadAll(input)
	if err != nil {
		return err
	}
	var answer reply
	if err := compile(context.Background(), &r, module); err != nil {
		answer.Error, answer.TooLarge = err.Error(), confine.IsTooLarge(err)
	}
	return json.NewEncoder(out).Encode(answer)
}

// compile writes the native code of a module to the cache directory of the request.
func compile(ctx context.Context, r *Request, module []byte) (err error) {
	cache, err := wazero.NewCompilationCacheWithDir(r.CacheDir)
	if err != nil {
		return err
	}
	runtime := wazero.NewRuntimeWithConfig(ctx, Engine(cache, r.Pages, false))
	defer func() { err = errors.Join(err, runtime.Close(ctx), cache.Close(ctx)) }()
	ctx = experimental.WithCompilationWorkers(Observed(ctx, r.Observed, silent{}), r.Workers)
	_, err = runtime.CompileModule(ctx, module)
	return err
}
