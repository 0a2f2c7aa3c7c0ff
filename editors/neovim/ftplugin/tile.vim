setlocal commentstring=//\ %s comments=:///,://
setlocal expandtab shiftwidth=4 softtabstop=4
