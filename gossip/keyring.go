package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Keys are rotated in three steps, each on every member before the next: InstallKey, so
// that all members can decrypt; UseKey; RemoveKey.

// Keys returns the keys, the encrypting one first, or nil if the pool is not encrypted. The
// caller must not change them.
func (p *Pool) Keys() [][]byte {
	if p.keys == nil {
		return nil
	}
	return p.keys.GetKeys()
}

// InstallKey adds a key for decryption. It does nothing if the key is installed.
func (p *Pool) InstallKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	p.keyMu.Lock()
	defer p.keyMu.Unlock()
	if err := p.keys.AddKey(key); err != nil {
		return fmt.Errorf("gossip key of %d bytes: %w", len(key), err)
	}
	return nil
}

// UseKey encrypts with an installed key from now on.
func (p *Pool) UseKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	p.keyMu.Lock()
	defer p.keyMu.Unlock()
	if err := p.keys.UseKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: install the key on every member first", err)
	}
	return nil
}

// RemoveKey removes a key that no longer encrypts.
//
// memberlist shifts the keys behind a removed one within the list that it reads without a
// lock for each message. RemoveKey makes the key the last one, so that nothing is shifted:
// a used key moves to the front and keeps the order of the others. Between the two calls
// another installed key encrypts.
func (p *Pool) RemoveKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	p.keyMu.Lock()
	defer p.keyMu.Unlock()
	keys := p.keys.GetKeys()
	at := slices.IndexFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
	for at > 0 && !bytes.Equal(keys[len(keys)-1], key) {
		if err := errors.Join(p.keys.UseKey(keys[len(keys)-1]), p.keys.UseKey(keys[0])); err != nil {
			return fmt.Errorf("gossip key: %w", err)
		}
		keys = p.keys.GetKeys()
	}
	if err := p.keys.RemoveKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: switch to another key first", err)
	}
	return nil
}
