package gossip

import "fmt"

// Keys are rotated in three steps, each on every member before the next: InstallKey, so
// that all members can decrypt; UseKey; RemoveKey.

// Keys returns the keys, the encrypting one first, or nil if the pool is not encrypted.
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
	if err := p.keys.UseKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: install the key on every member first", err)
	}
	return nil
}

// RemoveKey removes a key that no longer encrypts.
func (p *Pool) RemoveKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	if err := p.keys.RemoveKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: switch to another key first", err)
	}
	return nil
}
