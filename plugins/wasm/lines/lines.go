package lines

// A Place is a line of a source file.
type Place struct {
	File string // as the compiler wrote it, without its directory table; "" if unknown
	Line uint32 // from 1; 0 if unknown
}

// Find returns the place of each address, or the zero Place if the table does not contain
// it. Addresses are offsets in the content of the code section. strings is the custom
// section .debug_line_str, which version 5 requires.
func Find(table, strings []byte, addresses []uint32) []Place {
	places := make([]Place, len(addresses))
	c := cursor{buf: table}
	for len(c.buf) > 0 {
		size := c.u32()
		if size >= 0xffff_fff0 { // 64-bit DWARF, which no compiler emits for wasm32
			break
		}
		unit := cursor{buf: c.bytes(uint64(size))}
		if h, ok := readHeader(&unit); ok {
			s := search{header: h, addresses: addresses, found: make([]row, len(addresses))}
			s.run()
			for i, r := range s.found {
				if r.line > 0 {
					places[i] = Place{File: h.fileName(r.file, strings), Line: r.line}
				}
			}
		}
	}
	return places
}

// header is the header of a unit, followed by its program.
type header struct {
	version        uint16
	minInstruction uint64
	lineBase       int64
	lineRange      uint64 // Invariant: not 0
	opcodeBase     byte   // Invariant: not 0
	lengths        []byte // numbers of operands of standard opcodes, from 1
	names          cursor // the tables of directories and files
	program        cursor
}

// readHeader reads the header of a unit. It reports false if the version or the header is
// invalid.
func readHeader(unit *cursor) (h header, ok bool) {
	h.version = unit.u16()
	if h.version < 2 || h.version > 5 {
		return h, false
	}
	if h.version == 5 {
		unit.bytes(2) // sizes of an address and of a segment selector
	}
	size := unit.u32()
	h.names = cursor{buf: unit.bytes(uint64(size))}
	h.program = *unit
	h.minInstruction = uint64(h.names.byte())
	if h.version >= 4 {
		h.names.byte() // operations per instruction: always 1 without VLIW
	}
	h.names.byte() // default of is_stmt
	h.lineBase = int64(int8(h.names.byte()))
	h.lineRange = uint64(h.names.byte())
	h.opcodeBase = h.names.byte()
	if h.opcodeBase == 0 || h.lineRange == 0 {
		return h, false
	}
	h.lengths = h.names.bytes(uint64(h.opcodeBase) - 1)
	return h, !h.names.failed && !unit.failed
}

// row is a row of the line table.
type row struct {
	address uint64
	file    uint64
	line    uint32
}

// search runs the program of a unit. Its rows are compared with the addresses and not
// stored.
type search struct {
	header
	addresses []uint32
	found     []row // the row that covers each address; its line is 0 if there is none

	current  row
	previous row
	// inSequence reports whether previous is a row of the current sequence.
	inSequence bool
	// isDead reports whether the sequence describes a function that the linker dropped: its
	// address is 0, -1 or -2.
	isDead bool
}

// Standard opcodes, and extended ones, which follow a zero byte and their length.
const (
	opExtended = iota
	opCopy
	opAdvanceAddress
	opAdvanceLine
	opSetFile
	opSetColumn
	opNegateStatement
	opSetBasicBlock
	opConstAddAddress
	opFixedAdvanceAddress

	extEndSequence = 1
	extSetAddress  = 2
)

func (s *search) run() {
	s.reset()
	for p := &s.program; len(p.buf) > 0; {
		op := p.byte()
		switch {
		case op >= s.opcodeBase:
			s.advance(uint64(op - s.opcodeBase))
			s.current.line += uint32(s.lineBase + int64(uint64(op-s.opcodeBase)%s.lineRange))
			s.emit()
		case op == opExtended:
			s.extended(p)
		default:
			s.standard(p, op)
		}
	}
}

// reset starts a sequence.
func (s *search) reset() {
	s.current = row{file: 1, line: 1}
	s.inSequence, s.isDead = false, false
}

// advance adds the addresses of a special opcode, without its line.
func (s *search) advance(adjusted uint64) {
	s.current.address += adjusted / s.lineRange * s.minInstruction
}

func (s *search) extended(p *cursor) {
	operands := cursor{buf: p.bytes(p.uleb())}
	switch operands.byte() {
	case extEndSequence:
		s.emit()
		s.reset()
	case extSetAddress:
		if len(operands.buf) != 4 { // wasm64 is not supported
			operands.fail()
		}
		s.current.address = uint64(operands.u32())
	}
}

func (s *search) standard(p *cursor, op byte) {
	switch op {
	case opCopy:
		s.emit()
	case opAdvanceAddress:
		s.current.address += p.uleb() * s.minInstruction
	case opAdvanceLine:
		s.current.line += uint32(p.sleb())
	case opSetFile:
		s.current.file = p.uleb()
	case opConstAddAddress:
		s.advance(uint64(255 - s.opcodeBase))
	case opFixedAdvanceAddress:
		s.current.address += uint64(p.u16())
	default: // sets registers that are not read, or is unknown
		for range s.lengths[op-1] {
			p.uleb()
		}
	}
}

// emit ends the previous row of the sequence at the current one: it covers the addresses
// between them.
func (s *search) emit() {
	if !s.inSequence {
		s.inSequence = true
		first := uint32(s.current.address)
		s.isDead = first == 0 || first >= 0xffff_fffe
	} else if !s.isDead && s.previous.address < s.current.address {
		for i, a := range s.addresses {
			if a := uint64(a); s.previous.address <= a && a < s.current.address {
				s.found[i] = s.previous
			}
		}
	}
	s.previous = s.current
}
