a :: discard;
