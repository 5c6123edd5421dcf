// Package scaffold owns the templates of `cede policy init`: a small policy that
// builds, passes its own tests and differs from default, in each language, with its
// SDK.
//
// cmd/internal/cli calls it. It writes new files and never changes one.
package scaffold
