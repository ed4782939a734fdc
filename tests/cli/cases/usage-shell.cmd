glyd completion tcsh
