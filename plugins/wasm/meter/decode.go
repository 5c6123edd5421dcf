package meter

// contents is a decoded module, as far as metering and its callers require. Function bodies
// remain bytes until they are rewritten.
type contents struct {
	module   []byte
	options  Options
	sections []section

	types     []Signature
	imports   []Import
	functions []uint32 // type indexes of all functions, imports first
	tables    []table  // defined in the module
	memory    *Limits  // defined in the module
	exports   []Export
	start     int // index of the start function, or -1
	lines     *Lines

	importedFunctions, importedTables, importedMemories, importedGlobals int
	definedGlobals, codes                                                int
}

// table is a table defined in the module.
type table struct {
	element ValueType
	Limits
}

// decode reads everything except the instructions of functions. It trusts no length: an
// engine can decode accepted modules without large allocations.
func decode(module []byte, o Options) (*contents, *Error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	c := &contents{module: module, options: o, sections: sections, start: -1}
	for _, s := range sections {
		r := c.reader(s)
		if read := sectionReaders[s.id]; read != nil {
			read(c, &r)
			r.finish(sectionNames[s.id] + " section")
		}
		if r.failed() {
			return nil, r.err
		}
	}
	if defined := len(c.functions) - c.importedFunctions; defined != c.codes {
		return nil, &Error{
			Kind: ErrMalformed, Offset: len(module), Function: -1,
			What: "numbers of functions and function bodies differ",
		}
	}
	return c, nil
}

// reader returns a reader at the start of the section.
func (c *contents) reader(s section) reader {
	return reader{buf: c.module, pos: s.start, end: s.end, section: sectionNames[s.id], function: -1}
}

// sectionReaders decode the sections. The code section is processed by walk, which requires
// all others.
var sectionReaders = [...]func(*contents, *reader){
	secType:      (*contents).readTypes,
	secImport:    (*contents).readImports,
	secFunction:  (*contents).readFunctions,
	secTable:     (*contents).readTables,
	secMemory:    (*contents).readMemories,
	secGlobal:    (*contents).readGlobals,
	secExport:    (*contents).readExports,
	secStart:     (*contents).readStart,
	secElement:   (*contents).readElements,
	secDataCount: (*contents).readDataCount,
	secCode:      (*contents).readCodeCount,
	secData:      (*contents).readData,
}

// describe returns the properties that a loader needs.
func (c *contents) describe(code []byte) *Module {
	m := &Module{
		Code: code, Imports: c.imports, Exports: c.exports, Memory: c.memory,
		Start: c.start >= 0, Functions: c.codes, Lines: c.lines, Yield: -1,
	}
	if c.codes > 0 {
		m.Yield = c.yield()
	}
	for _, t := range c.tables {
		m.Tables = append(m.Tables, t.Limits)
	}
	return m
}

// countOf returns the number of items of a kind, imports included.
func (c *contents) countOf(k Kind) int {
	switch k {
	case KindFunction:
		return len(c.functions)
	case KindTable:
		return c.importedTables + len(c.tables)
	case KindMemory:
		if c.memory != nil {
			return c.importedMemories + 1
		}
		return c.importedMemories
	default:
		return c.globals()
	}
}

// globals returns the number of globals before metering, which is the index of the fuel
// global.
func (c *contents) globals() int { return c.importedGlobals + c.definedGlobals }
