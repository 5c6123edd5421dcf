package policy

import (
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/cede-scheduler/cede/cmd/internal/cli/cmdutil"
	"github.com/cede-scheduler/cede/cmd/internal/cli/policyflags"
	"github.com/cede-scheduler/cede/plugins/bundle"
)

// signedPolicy is the result of signing or verifying a policy.
type signedPolicy struct {
	Policy    string `json:"policy"`
	Digest    string `json:"digest"`
	Key       string `json:"key"`
	Signature string `json:"signature"`
	PublicKey string `json:"publicKey,omitempty"` // file of the public key, if a pair was created

	said string
}

func (s *signedPolicy) document() cmdutil.Document {
	return cmdutil.Document{Data: s, Names: []string{s.Policy}, Page: func(p cmdutil.Page) {
		p.Printf("%s %s %s\n", s.Policy, s.said, s.Key)
		if s.PublicKey != "" && !p.NoHeaders {
			p.Printf("To verify the signature, distribute %s: cede policy verify --trust %s\n", s.PublicKey, s.PublicKey)
		}
	}}
}

func newPolicySignCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign P",
		Short: "Sign a policy",
		Long: `Sign the manifest in the folder of policy P, and with it the module, whose digest the
manifest contains. The signature is written to policy.yaml.sig. A key is an ed25519
key in PEM, as --new-key or openssl genpkey -algorithm ed25519 creates it.

The module is not built: sign after the build.`,
		Example: `  cede policy sign thrifty --new-key me.key
  cede policy sign thrifty --key me.key`,
		Args: cmdutil.PositionalArgs(1, 1, "one policy's folder"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	key := cmd.Flags().String("key", "", "sign with the private key in `FILE`")
	fresh := cmd.Flags().String("new-key", "", "create a key pair, `FILE` and FILE.pub, and sign with it")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if (*key == "") == (*fresh == "") {
			return cmdutil.Usagef("--new-key FILE creates a key", "exactly one of --key and --new-key is required")
		}
		if err := isBuiltin(args[0], "nothing to sign"); err != nil {
			return err
		}
		b, err := openToSign(args[0])
		if err != nil {
			return policyflags.WrapError(args[0], err)
		}
		if b.Dir == "" {
			return policyflags.WrapError(args[0], b.Sign(nil))
		}
		s := &signedPolicy{Policy: b.Manifest.Name, Digest: b.Manifest.Digest, said: "is signed by"}
		private, err := signingKey(*key, *fresh, s)
		if err != nil {
			return err
		}
		if err := b.Sign(private); err != nil {
			return cmdutil.WriteError(args[0], err)
		}
		s.Key, s.Signature = b.SignedBy(), filepath.ToSlash(filepath.Join(b.Dir, bundle.SignatureFile))
		return out.Show(s.document())
	}
	return cmd
}

// openToSign reads a bundle. It ignores an invalid signature, because signing
// replaces it.
func openToSign(dir string) (*bundle.Bundle, error) {
	b, err := bundle.Open(dir)
	if err == nil {
		return b, nil
	}
	if _, bad := policyflags.BadSignature(err); !bad {
		return nil, err
	}
	if err := os.Remove(filepath.Join(dir, bundle.SignatureFile)); err != nil {
		return nil, err
	}
	return bundle.Open(dir)
}

// signingKey reads a key, or creates a pair.
func signingKey(file, fresh string, s *signedPolicy) (ed25519.PrivateKey, error) {
	if fresh != "" {
		if err := newKeyPair(fresh); err != nil {
			return nil, err
		}
		file, s.PublicKey = fresh, fresh+".pub"
	}
	private, err := bundle.ReadPrivateKey(file)
	if err != nil {
		return nil, keyError(err)
	}
	return private, nil
}

// newKeyPair creates a key pair. It does not overwrite files: if a private key is
// lost, policies must be signed with another one.
func newKeyPair(file string) error {
	private, public, err := bundle.NewKey()
	if err != nil {
		return err
	}
	if err := writeNew(file, private, 0o600); err != nil {
		return err
	}
	return writeNew(file+".pub", public, 0o644)
}

func writeNew(name string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return cmdutil.Usagef("use another name; the file was not changed", "%s already exists", name)
	}
	if err != nil {
		return cmdutil.WriteError(name, err)
	}
	_, err = f.Write(text)
	return cmdutil.WriteError(name, errors.Join(err, f.Close()))
}

// keyError returns the error for a key that cannot be read.
func keyError(err error) error {
	return &cmdutil.Error{Exit: cmdutil.ExitUsage, Code: cmdutil.CodeInvalid, Message: cmdutil.FileMessage(err), Hint: "`cede policy sign P --new-key FILE` creates FILE, to sign with, and FILE.pub, to trust", Err: err}
}

func newPolicyVerifyCmd(env *cmdutil.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:         "verify P",
		Short:       "Verify the signature of a policy",
		Annotations: cmdutil.ExitCodes("8 the signature is missing, not trusted or does not match"),
		Long: `Verify the signature of the folder of policy P: the module has the digest of the
manifest, and the manifest is signed by a trusted key.

Exit code 8 covers an unsigned policy, an untrusted key, and files that were changed
after signing.`,
		Example: `  cede policy verify thrifty --trust me.key.pub`,
		Args:    cmdutil.PositionalArgs(1, 1, "one policy"),
	}
	out := cmdutil.OutputFlags(cmd, env)
	trusted := cmd.Flags().StringSlice("trust", nil, "trust the public key in `FILE`; may be repeated")
	cmd.RunE = func(_ *cobra.Command, args []string) error {
		if err := out.Resolve(); err != nil {
			return err
		}
		if len(*trusted) == 0 {
			return cmdutil.Usagef("add the public key of the expected signer: --trust me.key.pub", "--trust is required")
		}
		roots, err := bundle.ReadRoots(*trusted...)
		if err != nil {
			return keyError(err)
		}
		if err := isBuiltin(args[0], "nothing to verify"); err != nil {
			return err
		}
		b, err := bundle.Open(args[0])
		switch {
		case err != nil && policyflags.IsAltered(args[0], err):
			text, _ := policyflags.BadSignature(err)
			return unverified(text)
		case err != nil:
			return policyflags.WrapError(args[0], err)
		}
		key, err := roots.Verify(b)
		if err != nil {
			return unverified(err.Error())
		}
		s := &signedPolicy{Policy: b.Manifest.Name, Digest: b.Manifest.Digest, Key: key, said: "is as it was signed by"}
		s.Signature = filepath.ToSlash(filepath.Join(b.Dir, bundle.SignatureFile))
		return out.Show(s.document())
	}
	return cmd
}

// unverified returns the error for a policy without a valid signature of a trusted
// key.
func unverified(why string) error {
	return &cmdutil.Error{Exit: cmdutil.ExitCheck, Code: cmdutil.CodeCheck, Message: why, Hint: "do not use the policy until the cause is found"}
}
