package abi

import (
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// lengthError reports an answer with more elements than its area can hold.
type lengthError struct{ count, limit int }

func (e *lengthError) Error() string {
	return "the answer has " + strconv.Itoa(e.count) + " elements, but its area holds " + strconv.Itoa(e.limit)
}

// ErrorText returns the guest's error text, truncated at ErrorCap bytes.
func (e *Encoder) ErrorText(frame []byte) string {
	at := e.errorOff()
	n := int(min(binary.LittleEndian.Uint32(frame[at:]), ErrorCap))
	return string(frame[at+4 : at+4+n])
}

// find returns the entry of an answer. It panics if the request did not include it.
func (e *Encoder) find(id ID) (c *column, entry int) {
	for i := range e.answers {
		if e.answers[i].id == id {
			return &e.answers[i], HeaderLen + (len(e.columns)+i)*EntryLen
		}
	}
	panic("abi: the request does not include this answer")
}

func (e *Encoder) area(frame []byte, id ID) []byte {
	c, _ := e.find(id)
	return frame[c.off : c.off+c.count*c.typ.Size()]
}

// used returns the part of an area that the guest has filled. It returns an error if
// the guest's count exceeds the area.
func (e *Encoder) used(frame []byte, id ID) ([]byte, error) {
	c, entry := e.find(id)
	n := binary.LittleEndian.Uint32(frame[entry+12:])
	if uint64(n) > uint64(c.count) {
		return nil, &lengthError{int(n), c.count}
	}
	return frame[c.off : c.off+int(n)*c.typ.Size()], nil
}

// Description is the answer to Describe.
type Description struct {
	Info         policy.Info
	Version      string // the policy's own, for people
	Hooks        uint32 // bits Hook*
	Configurable bool   // it takes configuration
	Settings     []byte // JSON, see ../settings
}

// Description decodes the answer to Describe.
func (e *Encoder) Description(frame []byte) (d Description, err error) {
	name, err1 := e.used(frame, AnswerName)
	version, err2 := e.used(frame, AnswerVersion)
	settings, err3 := e.used(frame, AnswerSettings)
	if err := errors.Join(err1, err2, err3); err != nil {
		return d, err
	}
	word := func(id ID) uint32 { return binary.LittleEndian.Uint32(e.area(frame, id)) }
	flags := word(AnswerFlags)
	d = Description{
		Version: string(version), Hooks: word(AnswerHooks), Configurable: flags&FlagConfigurable != 0,
		Settings: append([]byte(nil), settings...),
		Info: policy.Info{
			Name: string(name), Delta: int32(word(AnswerDelta)),
			Columns:  policy.Columns(binary.LittleEndian.Uint64(e.area(frame, AnswerColumns))),
			Adaptive: flags&FlagAdaptive != 0, Ascending: flags&FlagAscending != 0,
			KeepRedundant: flags&FlagKeepRedundant != 0, Elastic: flags&FlagElastic != 0,
			MultiCluster: flags&FlagMultiCluster != 0, LeastFirst: flags&FlagLeastFirst != 0,
			YoungestFirst: flags&FlagYoungestFirst != 0, Monotone: flags&FlagMonotone != 0,
		},
	}
	return d, nil
}

// recheck decodes the time at which the guest requests another evaluation. Zero means
// no request.
func (e *Encoder) recheck(frame []byte, to *policy.Recheck) {
	if at := int64(binary.LittleEndian.Uint64(e.area(frame, AnswerRecheck))); at != 0 {
		to.At(at)
	}
}

// Gap decodes the answer to PriorityDelta.
func (e *Encoder) Gap(frame []byte, gap []int32, recheck *policy.Recheck) {
	copy(raw(gap), e.area(frame, AnswerGap))
	e.recheck(frame, recheck)
}

// VictimScores decodes the answer to ScoreVictims.
func (e *Encoder) VictimScores(frame []byte, out *policy.VictimScores) {
	copy(raw(out.Tier), e.area(frame, AnswerTier))
	copy(raw(out.Score), e.area(frame, AnswerScore))
	e.recheck(frame, &out.Recheck)
}

// BindingVictims decodes the answer to PreemptBindings. An error is a fault of the
// guest.
func (e *Encoder) BindingVictims(frame []byte, out *policy.BindingVictims) error {
	if err := e.Selection(frame, &out.Selection); err != nil {
		return err
	}
	tiers := e.area(frame, AnswerTier)
	for k := range out.Tiers {
		copy(raw(out.Tiers[k]), tiers[8*k*e.options:])
	}
	return nil
}

// OptionScores decodes the answer to ScoreOptions.
func (e *Encoder) OptionScores(frame []byte, out *policy.OptionScores) {
	tiers := e.area(frame, AnswerTier)
	for k := range out.Tiers {
		copy(raw(out.Tiers[k]), tiers[8*k*e.options:])
	}
	copy(raw(out.Score), e.area(frame, AnswerScore))
	e.recheck(frame, &out.Recheck)
}

// Selection decodes the answer to SelectVictims. An error is a fault of the guest.
// The engine, not the decoder, checks whether rows belong to their options, as for
// any policy.
func (e *Encoder) Selection(frame []byte, out *policy.Selection) error {
	area, err := e.used(frame, AnswerPicks)
	if err != nil {
		return err
	}
	picks, ends := view[int32](area), view[int32](e.area(frame, AnswerEnds))
	at := int32(0)
	for i, end := range ends {
		if end < at || int(end) > len(picks) {
			return errors.New("the picks of option " + strconv.Itoa(i) + " end at " + strconv.Itoa(int(end)) +
				", where those before end at " + strconv.Itoa(int(at)) + " and there are " + strconv.Itoa(len(picks)))
		}
		for ; at < end; at++ {
			out.Pick(int(picks[at]))
		}
		out.Next()
	}
	if int(at) != len(picks) {
		return errors.New(strconv.Itoa(len(picks)-int(at)) + " picks belong to no option")
	}
	e.recheck(frame, &out.Recheck)
	return nil
}
