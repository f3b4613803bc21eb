package meter

// table is the jump by a table with which a loop begins:
//
//	loop
//	  block … block
//	    local.get X
//	    br_table …
//	  end …
//
// Compilers that know no structured code, Go's among them, make a function of such a loop: a jump
// anywhere in it is "i32.const K, local.set X, br to the loop", and goes through the header, which
// is charged, and through the table. Where the table leads from K to a block that has not ended
// yet, the jump may go there at once: nothing stands between the header and the table. That is a
// jump forward like any other, for which the paths account, so it needs no charge.
type table struct {
	local   int64
	targets []uint32 // serials of blocks; the last one is the default
}

// tableOf returns a table to be filled where a loop begins with the br_table that comes now, else
// nil; before is the instruction in front of it.
func (f *body) tableOf(before simple) *table {
	if before.op != opLocalGet || f.top().inside != before.at {
		return nil
	}
	for i := len(f.blocks) - 1; i > 0 && f.blocks[i].inside > 0; i-- {
		switch b := &f.blocks[i]; {
		case b.kind == opLoop:
			b.table = &table{local: before.operand}
			return b.table
		case b.kind != opBlock || !b.first:
			return nil
		}
	}
	return nil
}

// ahead returns the depth of the block to which a jump by that depth leads in the end, if it is a
// jump to a loop's table; before are the two instructions in front of the jump.
func (f *body) ahead(depth uint32, before [2]simple) (uint32, bool) {
	if before[0].op != opI32Const || before[1].op != opLocalSet {
		return 0, false
	}
	loop := len(f.blocks) - 1 - int(depth)
	t := f.blocks[loop].table
	if t == nil || t.local != before[1].operand {
		return 0, false
	}
	serial := t.targets[min(int64(uint32(before[0].operand)), int64(len(t.targets)-1))]
	for i := len(f.blocks) - 1; i > loop; i-- {
		if f.blocks[i].serial == serial {
			return uint32(len(f.blocks) - 1 - i), true
		}
	}
	return 0, false
}
