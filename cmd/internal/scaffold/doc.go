// Package scaffold owns what `cede policy init` lays down: a small policy that
// builds, passes its own tests and differs from default at once, in each
// language, with the SDK that it needs beside it.
//
// cmd/internal/cli calls it. It writes new files and never changes one.
package scaffold
