package ugly_test

test_spaces if {   1==1 }
