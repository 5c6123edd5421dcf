package abi

import (
	"encoding/binary"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// find returns the entry of an answer, or ErrAnswer if it is missing or has another shape.
func (d *Decoder) find(id ID, t Type, n int64) (entry, error) {
	var found entry
	at, count := d.entries(offAnswers, offAnswersOff)
	for range count {
		e, err := d.entry(at)
		if err != nil {
			return e, err
		}
		if e.id == id {
			found = e
		}
		at += EntryLen
	}
	if found.id != id || found.typ != t || n >= 0 && int64(found.count) != n {
		return found, ErrAnswer
	}
	return found, nil
}

// reply returns the area of an answer.
func reply[T element](d *Decoder, id ID, t Type, n int64) ([]T, entry, error) {
	e, err := d.find(id, t, n)
	if err != nil {
		return nil, e, err
	}
	return view[T](d.frame[e.off : e.off+e.count*t.Size()]), e, nil
}

// putCount writes the number of used elements of an area.
func (d *Decoder) putCount(e entry, n int) {
	binary.LittleEndian.PutUint32(d.frame[e.at+12:], uint32(n))
}

// PutError writes an error text, truncated to the error area.
func (d *Decoder) PutError(text string) {
	le := binary.LittleEndian
	at, room := uint64(le.Uint32(d.frame[offErrorOff:])), uint64(le.Uint32(d.frame[offErrorCap:]))
	if at+4+room > uint64(len(d.frame)) {
		return
	}
	n := copy(d.frame[at+4:at+4+room], text)
	le.PutUint32(d.frame[at:], uint32(n))
}

// Gap returns the answer area of PriorityDelta, filled with the base gap.
func (d *Decoder) Gap() ([]int32, error) {
	gap, _, err := reply[int32](d, AnswerGap, I32, int64(d.rows))
	return gap, err
}

// VictimScores sets out to the answer areas of ScoreVictims, filled with zeros.
func (d *Decoder) VictimScores(out *policy.VictimScores) (err error) {
	*out = policy.VictimScores{}
	if out.Tier, _, err = reply[int64](d, AnswerTier, I64, int64(d.rows)); err != nil {
		return err
	}
	out.Score, _, err = reply[float64](d, AnswerScore, F64, int64(d.rows))
	return err
}

// BindingTiers sets the tiers of out to the answer area of PreemptBindings, filled
// with zeros.
func (d *Decoder) BindingTiers(out *policy.BindingVictims) error {
	tiers, _, err := reply[int64](d, AnswerTier, I64, int64(len(out.Tiers))*int64(d.options))
	if err != nil {
		return err
	}
	for k := range out.Tiers {
		out.Tiers[k] = tiers[k*d.options : (k+1)*d.options]
	}
	return nil
}

// OptionScores sets out to the answer areas of ScoreOptions, filled with zeros.
func (d *Decoder) OptionScores(out *policy.OptionScores) error {
	*out = policy.OptionScores{}
	tiers, _, err := reply[int64](d, AnswerTier, I64, int64(len(out.Tiers))*int64(d.options))
	if err != nil {
		return err
	}
	for k := range out.Tiers {
		out.Tiers[k] = tiers[k*d.options : (k+1)*d.options]
	}
	out.Score, _, err = reply[float64](d, AnswerScore, F64, int64(d.options))
	return err
}

// PutSelection writes the answer of SelectVictims. If the list is too long, it is
// truncated and its count is not, so that the host can report the fault.
func (d *Decoder) PutSelection(s *policy.Selection) error {
	picks, e, err := reply[int32](d, AnswerPicks, I32, -1)
	if err != nil {
		return err
	}
	ends, _, err := reply[int32](d, AnswerEnds, I32, int64(d.options))
	if err != nil {
		return err
	}
	if s.Len() != d.options {
		return ErrOptions
	}
	n := 0
	for i := range ends {
		if n <= len(picks) {
			copy(picks[n:], s.Rows(i))
		}
		n += len(s.Rows(i))
		ends[i] = int32(n)
	}
	d.putCount(e, n)
	return nil
}

// PutRecheck writes the time at which the policy requests another evaluation.
func (d *Decoder) PutRecheck(r *policy.Recheck) error {
	at, _, err := reply[int64](d, AnswerRecheck, I64, 1)
	if err == nil {
		at[0] = r.Time()
	}
	return err
}

// PutDescription writes the description of the policy.
func (d *Decoder) PutDescription(p *Description) error {
	flags := int32(0)
	for bit, set := range map[int32]bool{
		FlagAdaptive: p.Info.Adaptive, FlagAscending: p.Info.Ascending,
		FlagKeepRedundant: p.Info.KeepRedundant, FlagConfigurable: p.Configurable,
		FlagElastic: p.Info.Elastic, FlagMultiCluster: p.Info.MultiCluster, FlagLeastFirst: p.Info.LeastFirst,
		FlagYoungestFirst: p.Info.YoungestFirst, FlagMonotone: p.Info.Monotone,
	} {
		if set {
			flags |= bit
		}
	}
	for id, value := range map[ID]int32{AnswerHooks: int32(p.Hooks), AnswerFlags: flags, AnswerDelta: p.Info.Delta} {
		word, _, err := reply[int32](d, id, I32, 1)
		if err != nil {
			return err
		}
		word[0] = value
	}
	columns, _, err := reply[int64](d, AnswerColumns, I64, 1)
	if err != nil {
		return err
	}
	columns[0] = int64(p.Info.Columns)
	for id, text := range map[ID]string{AnswerName: p.Info.Name, AnswerVersion: p.Version, AnswerSettings: string(p.Settings)} {
		if err := d.putText(id, text); err != nil {
			return err
		}
	}
	return nil
}

func (d *Decoder) putText(id ID, text string) error {
	area, e, err := reply[uint8](d, id, U8, -1)
	if err != nil {
		return err
	}
	copy(area, text)
	d.putCount(e, len(text))
	return nil
}

// Config decodes a configuration.
func (d *Decoder) Config(settings []policy.Setting) (*policy.Config, error) {
	if err := d.index(); err != nil {
		return nil, err
	}
	s := &d.settings
	s.names, s.items, s.texts = d.int32s(SettingName, -1), d.int32s(SettingItem, -1), d.int32s(SettingText, -1)
	s.kinds, s.integers, s.numbers = d.bytes(SettingKind, -1), d.int64s(SettingInteger, -1), d.floats(SettingNumber, -1)
	if d.columns.bad {
		return nil, ErrColumn
	}
	n := len(s.names)
	if len(s.kinds) != n || len(s.items) != n || len(s.integers) != n || len(s.numbers) != n || len(s.texts) != n {
		return nil, ErrMissing
	}
	var values []policy.Value
	for i := range n {
		values = append(values, policy.Value{
			Name: clone(d.string(s.names[i])), Kind: policy.Kind(s.kinds[i]), Item: clone(d.string(s.items[i])),
			Integer: s.integers[i], Number: s.numbers[i], Text: clone(d.string(s.texts[i])),
		})
	}
	return policy.NewConfig(settings, values), nil
}

// clone copies a string so that it outlives its frame.
func clone(text string) string { return string(append([]byte(nil), text...)) }
