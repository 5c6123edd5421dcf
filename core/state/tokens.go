package state

import "github.com/cede-scheduler/cede/core/model"

func tokenAccessor(t *model.Token) string { return t.Accessor }

// Tokens is the tokens, ascending by accessor. It is shared and read-only.
func (v *View) Tokens() []*model.Token { return v.small.tokens }

// Token is the token of this accessor; nil when there is none.
func (v *View) Token(accessor string) *model.Token {
	return v.small.tokens.Get(accessor, tokenAccessor)
}

// TokenByHash is the token whose secret has this hash; nil when there is none.
// Operators have few tokens, so all are looked at.
func (v *View) TokenByHash(hash [32]byte) *model.Token {
	for _, t := range v.small.tokens {
		if t.Hash == hash {
			return t
		}
	}
	return nil
}

// UpsertToken stores a token and sets its index.
func (t *Txn) UpsertToken(k *model.Token) {
	if !t.restores {
		k.CreateIndex = t.index
		if old := t.Token(k.Accessor); old != nil {
			k.CreateIndex = old.CreateIndex
		}
	}
	a := t.ownSmall()
	a.tokens = a.tokens.With(k, tokenAccessor)
	t.touch(TableTokens.Of(k.Accessor))
}

// DeleteToken forgets a token, if it is there.
func (t *Txn) DeleteToken(accessor string) {
	if next, found := t.small.tokens.Without(accessor, tokenAccessor); found {
		t.ownSmall().tokens = next
		t.touch(TableTokens.Of(accessor))
	}
}
