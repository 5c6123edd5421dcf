package datadir

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/cede-scheduler/cede/core/internal/checkedfile"
)

// ReadDecisionKey returns the key that signs certificates of decisions. It returns
// fs.ErrNotExist if the server has not created one, and a *DamageError if the file was
// altered.
func ReadDecisionKey(layout Layout) (ed25519.PrivateKey, error) {
	content, _, err := checkedfile.Read(layout.DecisionKey())
	if errors.Is(err, checkedfile.ErrChecksum) {
		return nil, decisionKeyDamage(layout, err.Error())
	}
	if err != nil {
		return nil, err
	}
	seed, err := hex.DecodeString(strings.TrimSpace(string(content)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, decisionKeyDamage(layout, "not a key")
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// WriteDecisionKey stores a new key. Only the owner of the file may read it.
func WriteDecisionKey(layout Layout, key ed25519.PrivateKey) error {
	return checkedfile.Write(layout.DecisionKey(), []byte(hex.EncodeToString(key.Seed())), 0o600)
}

// keyPart names the key in messages, and remedyKey is the next step if it is damaged.
const (
	keyPart   = "key of decision certificates"
	remedyKey = "restore it from a backup, or delete it: the server then creates another one"
)

func decisionKeyDamage(layout Layout, problem string) *DamageError {
	return &DamageError{Part: keyPart, Path: layout.DecisionKey(), Problem: problem, Remedy: remedyKey}
}
