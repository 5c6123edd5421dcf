package gossip

import "fmt"

// Rotate keys in three steps, each on every member before the next begins:
// InstallKey, so that all can open what the new key seals; UseKey; RemoveKey.

// Keys lists the keys, the one that seals first; nil where nothing is sealed.
func (p *Pool) Keys() [][]byte {
	if p.keys == nil {
		return nil
	}
	return p.keys.GetKeys()
}

// InstallKey adds a key that opens. A key that is there already changes nothing.
func (p *Pool) InstallKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	if err := p.keys.AddKey(key); err != nil {
		return fmt.Errorf("gossip key of %d bytes: %w", len(key), err)
	}
	return nil
}

// UseKey seals with an installed key from now on.
func (p *Pool) UseKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	if err := p.keys.UseKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: install it on every member first", err)
	}
	return nil
}

// RemoveKey forgets a key that seals no more.
func (p *Pool) RemoveKey(key []byte) error {
	if p.keys == nil {
		return errNoKeys
	}
	if err := p.keys.RemoveKey(key); err != nil {
		return fmt.Errorf("gossip key: %w: use another one first", err)
	}
	return nil
}
